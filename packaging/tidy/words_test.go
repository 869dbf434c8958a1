package tidy_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentColumnsMax is the widest line that holds only a comment; a tab counts as one column.
const commentColumnsMax = 120

// A wordRule refuses a construction that readers from elsewhere stumble over.
type wordRule struct {
	why     string // the reason, with a better word
	pattern string
	hints   string // small letters, one of which is in each match: looking for them first is much faster; "" = always match
	except  string // of what the pattern finds, for what is good all the same; "" = nothing
}

// proseRules hold comments, documents, help, messages and declared names.
var proseRules = []wordRule{
	{why: "a program is not a person: name the client, caller, operator, goroutine or node", pattern: `(?i)\b(whoever|whomever|somebody|nobody|anybody|everybody)\b`, hints: "ever body",
		except: `^NoBody$`},
	{why: "a program is not a person: write that or which, or name it", pattern: `(?i)\b(he|she|his|him|hers|whom)\b`, hints: "he his him whom"},
	{why: "a program is not a person: write that, or name it", pattern: `(?i)\b(?:[\w-]+,? )?who\b`, hints: "who",
		except: `(?i)(users?|operators?|persons?|people|readers?|engineers?|developers?|integrators?|attackers?|customers?|anyone|those),? who$`},
	{why: "nothing is told: an error is reported, a client gets an answer", pattern: `(?i)\b(is|are|was|were|be|been) told\b`, hints: "told"},
	{why: "say only, by itself or single", pattern: `(?i)\b([\w-]+,? )?alone\b`, hints: "alone", except: `(?i)^(let|leave|leaves|left|it|them) alone$`},
	{why: "say is not, or there is no", pattern: `(?i)\b([\w-]+,? )(is|are|was|were|be) (no|none|nothing)\b( \w+)?`, hints: "no",
		except: `(?i)^there |\bbe no|no (longer|more|less|later|better|sooner|fewer)$`},
	{why: "begin with the thing itself: Startup cost is, not What a start costs is", pattern: `(?:^|[.;] )What [^.?]*(?:[.:;,]|$)`, hints: "what"},
	{why: "say the rule in words; the id of a decision stands behind them: (decision S11)", pattern: `\((?:see )?[A-Z]\d{1,2}(?:(?:,| and| to|–|;) ?[A-Z]\d{1,2})*\)`},
	{why: "a word of this project's early days; the field has its own: message, client, caller, counter, job, received",
		pattern: `(?i)\b(purses?|errands?|postmen|postman's|strangers?|tenants?|breaths?|census|heard|vitals|surrender(s|ed)?|sleepers|outlook|booths?|tally|tallies)\b`, hints: "purse errand postm stranger tenant breath census heard vitals surrender sleepers outlook booth tall"},
	{why: "an e-mail is an e-mail, and an actor gets messages", pattern: `(?i)\b(?:[\w-]+,? )?letters?\b(?:(?:,| and| or)? [\w-]+)?`, hints: "letter",
		except: `(?i)letters?(,| and| or) (digits?|hyphens?|underscores?|spaces?|numbers?)|(small|capital|case|lowercase|uppercase|ascii|accented|latin|digits and|digits or) letters?`},
	{why: "an old word: say again, after, on, from", pattern: `(?i)\b(anew|lest|whence|thither|hither|upon|whereupon|thereupon|whilst|amongst)\b`, hints: "anew lest hence hither upon whilst amongst"},
	{why: "read twice: say what there is", pattern: `(?i)\b(of nothing|nothing of|by turns)\b`, hints: "nothing turns"},
}

// messageRules hold besides the golden files of what the program prints.
var messageRules = []wordRule{
	{why: "its name twice", pattern: `^tasard: tasard\b`},
	{why: "empty quotes: say that it is missing", pattern: `(^|[^=\w])""`},
	{why: "a list as Go prints it: join it with commas", pattern: `\["\S+"( "\S+")*\]`},
	{why: "the name of a Go type or field", pattern: `\b(\*?[a-z]+\.[A-Z]\w+|[A-Z][a-z]+\.[A-Z][a-z]\w+|BaseURL|CAFile)\b`},
	{why: "too long: name the thing, and the way to see the rest", pattern: `^tasard\b.{700}`},
}

// find gives what a rule refuses in a text.
func (r wordRule) find(text string) (found []string) {
	if lower := strings.ToLower(text); r.hints != "" &&
		!slices.ContainsFunc(strings.Fields(r.hints), func(hint string) bool { return strings.Contains(lower, hint) }) {
		return nil
	}
	for _, match := range compiled(r.pattern).FindAllString(text, -1) {
		if r.except == "" || !compiled(r.except).MatchString(match) {
			found = append(found, match)
		}
	}
	return found
}

var patterns = map[string]*regexp.Regexp{}

func compiled(pattern string) *regexp.Regexp {
	if patterns[pattern] == nil {
		patterns[pattern] = regexp.MustCompile(pattern)
	}
	return patterns[pattern]
}

// A passage is a text that is read as a whole: a comment, a message, a line of a document.
type passage struct {
	line    int // where it begins
	text    string
	message bool // the program prints it
}

// TestWords holds every comment, document, help text and message against the rules above.
func TestWords(t *testing.T) {
	var problems []string
	for _, s := range readSources(t) {
		problems = append(problems, passageProblems(s.path, goPassages(s))...)
	}
	for _, name := range files() {
		text := readText(t, name)
		if !utf8.ValidString(text) {
			continue
		}
		problems = append(problems, columnProblems(name, text)...)
		if name != "docs/decisions.md" && path.Ext(name) != ".go" { // the register names its ids
			problems = append(problems, passageProblems(name, textPassages(name, text))...)
		}
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// passageProblems holds the passages of a file against the rules of their kind.
func passageProblems(name string, passages []passage) (problems []string) {
	if strings.HasPrefix(name, "packaging/tidy/") {
		return nil // it names what it refuses
	}
	for _, p := range passages {
		if path.Ext(name) == ".md" {
			p.text = compiled("`[^`]*`").ReplaceAllString(p.text, "`x`") // code
		}
		rules := proseRules
		if p.message {
			rules = slices.Concat(messageRules, proseRules)
		}
		for _, rule := range rules {
			for _, found := range rule.find(p.text) {
				problems = append(problems, fmt.Sprintf("%s:%d: %q: %s", name, p.line, found, rule.why))
			}
		}
	}
	return problems
}

// goPassages are the comments and declared names of a Go file and, outside tests, its texts of two words and more.
func goPassages(s source) (passages []passage) {
	for _, name := range declared(s) {
		passages = append(passages, passage{s.lineOf(name.Pos()), wordsOf(name.Name), false})
	}
	for _, group := range s.file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		passages = append(passages, passage{s.lineOf(group.Pos()), text, false})
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || s.isTest() {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && strings.Contains(strings.TrimSpace(text), " ") {
			passages = append(passages, passage{s.lineOf(literal.Pos()), strings.Join(strings.Fields(text), " "), false})
		}
		return true
	})
	return passages
}

// declared are the names that a file declares outside functions, with fields and methods.
func declared(s source) (names []*ast.Ident) {
	ast.Inspect(s.file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			names = append(names, node.Name)
			return false
		case *ast.TypeSpec:
			names = append(names, node.Name)
		case *ast.ValueSpec:
			names = append(names, node.Names...)
		case *ast.Field:
			names = append(names, node.Names...)
		}
		return true
	})
	return names
}

// wordsOf are the words of a name in camel case.
func wordsOf(name string) string {
	return strings.TrimSpace(compiled(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "$1 $2"))
}

// textPassages returns the lines of a document without its code, and those of a golden file of messages or help.
func textPassages(name, text string) (passages []passage) {
	isGolden := strings.HasPrefix(name, "cmd/testdata/")
	isDocument := path.Ext(name) == ".md"
	if strings.Contains(name, "testdata/") && !isGolden {
		return nil
	}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if fenced = fenced != strings.HasPrefix(trimmed, "```"); isDocument && (fenced || strings.HasPrefix(line, "    ")) {
			continue
		}
		if isDocument {
			line = strings.Trim(trimmed, "#-| ")
		}
		if isDocument || isGolden {
			passages = append(passages, passage{i + 1, line, isGolden})
		}
	}
	return passages
}

// columnProblems finds comments that are too wide.
func columnProblems(name, text string) (problems []string) {
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		only := path.Ext(name) == ".go" && strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "//go:")
		if columns := utf8.RuneCountInString(line); only && columns > commentColumnsMax && !strings.Contains(name, "testdata/") {
			problems = append(problems, fmt.Sprintf("%s:%d: a comment of %d columns, at most %d", name, i+1, columns, commentColumnsMax))
		}
	}
	return problems
}

// decisionsOf returns the ids that the register must have.
func decisionsOf() []string {
	var ids []string
	for _, group := range []struct {
		letter string
		last   int
	}{{"S", 11}, {"P", 10}, {"T", 10}, {"Q", 16}, {"E", 5}, {"L", 10}, {"K", 9}, {"I", 4}, {"X", 26}} {
		for n := 1; n <= group.last; n++ {
			ids = append(ids, fmt.Sprintf("%s%d", group.letter, n))
		}
	}
	return ids
}

// TestReadme_Register wants a row for each decision, with a test that exists: the one named there, or one with its id.
func TestReadme_Register(t *testing.T) {
	rows := regexp.MustCompile("(?m)^- \\*\\*([SPTQELKIX]\\d+)\\*\\* .+?(?: `(Test\\w+)`)?$").FindAllStringSubmatch(readText(t, "docs/decisions.md"), -1)
	tests := map[string]bool{}
	for _, s := range readSources(t) {
		for _, declaration := range s.file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && s.isTest() {
				tests[function.Name.Name] = true
			}
		}
	}
	var ids []string
	for _, row := range rows {
		id, named := row[1], row[2]
		ids = append(ids, id)
		exists := tests[named]
		for name := range tests {
			exists = exists || named == "" && strings.HasPrefix(name, "Test"+id+"_")
		}
		if !exists {
			t.Errorf("%s has no test (named in its row: %q)", id, named)
		}
	}
	if want := decisionsOf(); !slices.Equal(ids, want) {
		t.Errorf("the register has %q,\nwant %q", ids, want)
	}
}

// TestReadme_ExitCodes wants docs and help to list the same codes.
func TestReadme_ExitCodes(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \|$`).FindAllStringSubmatch(readText(t, "docs/recovery.md"), -1)
	var lines []string
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("  %-4s %s", row[1], row[2]))
	}
	if got := "\nExit codes:\n" + strings.Join(lines, "\n") + "\n\n"; !strings.Contains(readText(t, "cmd/testdata/help.txt"), got) {
		t.Errorf("the help does not have the table of docs/recovery.md%s", got)
	}
}

// TestDocs_LinksAndLength wants every link of README and docs to lead to an existing file and heading, and short pages.
func TestDocs_LinksAndLength(t *testing.T) {
	links := 0
	for _, name := range files() {
		if name != "README.md" && path.Dir(name) != "docs" || path.Ext(name) != ".md" {
			continue
		}
		text := readText(t, name)
		if lines, most := strings.Count(text, "\n"), map[bool]int{true: 200, false: 300}[name == "README.md"]; lines > most {
			t.Errorf("%s has %d lines, at most %d", name, lines, most)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			target = path.Join(path.Dir(name), target)
			if strings.HasPrefix(link[1], "#") {
				target = name
			}
			if !slices.Contains(files(), target) {
				t.Errorf("%s links to %s, which does not exist", name, link[1])
			} else if heading != "" && !slices.Contains(headings(readText(t, target)), heading) {
				t.Errorf("%s links to %s: %s has no such heading", name, link[1], target)
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links were found", links)
	}
}

// headings returns the anchors of a page's headings.
func headings(text string) (anchors []string) {
	for _, line := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		word := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(line[1]), "")
		anchors = append(anchors, strings.ReplaceAll(word, " ", "-"))
	}
	return anchors
}
