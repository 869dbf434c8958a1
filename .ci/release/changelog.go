package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// changes are those of one version, as CHANGELOG.md tells them.
type changes struct {
	version string // "" = not released yet
	day     time.Time
	items   []string
}

// headingForm is a heading of a version: [1.2.3] - 2026-11-30, or [Unreleased].
const headingForm = `^## \[([^\]]+)\](?: - ([0-9]{4}-[0-9]{2}-[0-9]{2}))?\s*$`

// readChangelog reads the form of Keep a Changelog: the newest version first.
func readChangelog(text string) ([]changes, error) {
	heading := regexp.MustCompile(headingForm)
	var all []changes
	kind := ""
	for number, line := range strings.Split(text, "\n") {
		found := heading.FindStringSubmatch(line)
		switch {
		case found != nil && found[1] == "Unreleased":
			all = append(all, changes{})
		case found != nil:
			day, err := time.Parse(time.DateOnly, found[2])
			if err != nil {
				return nil, fmt.Errorf("CHANGELOG.md:%d: version %s has no day; want ## [%[2]s] - YYYY-MM-DD", number+1, found[1])
			}
			all = append(all, changes{version: found[1], day: day})
		case strings.HasPrefix(line, "## "):
			return nil, fmt.Errorf("CHANGELOG.md:%d: %q is no heading of a version", number+1, line)
		case strings.HasPrefix(line, "### "):
			kind = strings.TrimSpace(line[4:])
		case len(all) == 0 || strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "- "):
			last := &all[len(all)-1]
			last.items = append(last.items, kind+": "+strings.TrimSpace(line[2:]))
		default:
			if last := &all[len(all)-1]; len(last.items) > 0 {
				last.items[len(last.items)-1] += " " + strings.TrimSpace(line)
			}
		}
	}
	return all, nil
}

// debianChangelog is CHANGELOG.md in Debian's form. What is not released yet is of this release, unless that has a heading of
// its own.
func debianChangelog(text, version string, at time.Time) ([]byte, error) {
	all, err := readChangelog(text)
	if err != nil {
		return nil, err
	}
	known := false
	for _, c := range all {
		known = known || c.version == version
	}
	var out bytes.Buffer
	for _, c := range all {
		switch {
		case c.version == "" && (known || len(c.items) == 0):
			continue
		case c.version == "":
			c.version, c.day = version, at
		case c.version == version:
			c.day = at
		}
		writeStanza(&out, c)
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("CHANGELOG.md tells no change, neither of %s nor unreleased", version)
	}
	return out.Bytes(), nil
}

// writeStanza writes the changes of one version, with lines of 78 characters.
func writeStanza(out *bytes.Buffer, c changes) {
	_, _ = fmt.Fprintf(out, "tasard (%s-1) stable; urgency=medium\n\n", strings.Replace(c.version, "-", "~", 1))
	for _, item := range c.items {
		lead := "  * "
		for _, line := range wrapped(item, 74) {
			out.WriteString(lead + line + "\n")
			lead = "    "
		}
	}
	_, _ = fmt.Fprintf(out, "\n -- The tasard authors <tasard@users.noreply.github.com>  %s\n\n", c.day.Format(time.RFC1123Z))
}

// wrapped cuts a text between words into lines of at most width characters; a longer word has a line of its own.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
