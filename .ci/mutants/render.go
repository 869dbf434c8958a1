package main

import (
	"fmt"
	"go/token"
	"sort"
	"strings"
)

// switchSource is added to the package: which mutant is on, and which were passed.
const switchSource = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var mutantOn__ = func() int { n, _ := strconv.Atoi(os.Getenv("MUTANT")); return n }()

var mutantWatch__ = func() *os.File {
	if name := os.Getenv("MUTANT_WATCH"); name != "" {
		f, _ := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		return f
	}
	return nil
}()

var mutantSeen__ sync.Map

func mutant__(n int) bool {
	if mutantWatch__ != nil {
		if _, was := mutantSeen__.LoadOrStore(n, true); !was {
			_, _ = mutantWatch__.WriteString(strconv.Itoa(n) + "\n")
		}
	}
	return mutantOn__ == n
}
`

// render is a file with all its mutants behind their switches.
func render(c *checked, f *source, sites []*site) string {
	var mine []*site
	for _, s := range sites {
		if s.file == f {
			mine = append(mine, s)
		}
	}
	// Outer sites before those in them.
	sort.Slice(mine, func(i, j int) bool {
		if mine[i].from != mine[j].from {
			return mine[i].from < mine[j].from
		}
		return mine[i].to > mine[j].to
	})
	r := &renderer{checked: c, file: f, sites: mine}
	return r.span(f.syntax.FileStart, f.syntax.FileEnd)
}

type renderer struct {
	*checked
	file  *source
	sites []*site // those not yet written
}

// span writes the source between two positions, the sites in it changed.
func (r *renderer) span(from, to token.Pos) string {
	var out strings.Builder
	for len(r.sites) > 0 && r.sites[0].to <= to {
		s := r.sites[0]
		r.sites = r.sites[1:]
		out.WriteString(r.textOf(r.file, from, s.from))
		out.WriteString(r.site(s))
		from = s.to
	}
	out.WriteString(r.textOf(r.file, from, to))
	return out.String()
}

// site is a call of a function that does what the mutant that is on does, else what was written.
func (r *renderer) site(s *site) string {
	var out strings.Builder
	fmt.Fprintf(&out, "func() %s { ", s.kind)
	for _, m := range s.mutants {
		switch {
		case m.broken:
		case s.kind == "":
			fmt.Fprintf(&out, "if mutant__(%d) { %s; return }; ", m.id, m.text)
		default:
			fmt.Fprintf(&out, "if mutant__(%d) { return %s }; ", m.id, m.text)
		}
	}
	if s.kind != "" {
		out.WriteString("return ")
	}
	out.WriteString(r.span(s.from, s.to) + " }()")
	return out.String()
}
