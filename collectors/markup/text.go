package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/values"
)

// textBytesMax bounds a visible text. No document is larger.
const textBytesMax = 8 << 20

// Text returns an attribute of an element or, with attribute "", its visible text. For scripts and other invisible
// elements it returns the source text. It returns false if the element does not have the attribute.
func Text(node *html.Node, attribute string) (string, bool) {
	if attribute != "" {
		for _, attr := range node.Attr {
			if attr.Namespace == "" && strings.EqualFold(attr.Key, attribute) {
				return attr.Val, true
			}
		}
		return "", false
	}
	if IsInvisible(node) || node.DataAtom == atom.Textarea {
		var source strings.Builder
		for child := node.FirstChild; child != nil; child = child.NextSibling {
			if child.Type == html.TextNode {
				source.WriteString(child.Data)
			}
		}
		return source.String(), true
	}
	return VisibleText(node), true
}

// VisibleText returns the visible text of an element, with single spaces. It surrounds inner elements with spaces, so
// that two numbers, or a price and a footnote's digit, do not become one number. Elements such as <b> (isTypeface) get
// no spaces.
func VisibleText(node *html.Node) string {
	var b strings.Builder
	writeVisible(&b, node, textBytesMax)
	return values.CollapseSpaces(b.String())
}

// writeVisible writes the visible text of a node until b has bytesMax bytes. It is recursive; the HTML parser limits
// the depth.
func writeVisible(b *strings.Builder, node *html.Node, bytesMax int) {
	if b.Len() >= bytesMax {
		return
	}
	if node.Type == html.TextNode {
		b.WriteString(node.Data[:min(len(node.Data), bytesMax-b.Len())])
		return
	}
	if IsInvisible(node) || IsStruckOut(node) {
		b.WriteByte(' ')
		return
	}
	separate := node.Type == html.ElementNode && !isTypeface(node)
	if separate {
		b.WriteByte(' ')
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		if IsHidden(child) {
			b.WriteByte(' ')
			continue
		}
		writeVisible(b, child, bytesMax)
	}
	if separate {
		b.WriteByte(' ')
	}
}

// IsInvisible reports whether an element's content, such as a script, is not text for people.
func IsInvisible(node *html.Node) bool {
	invisible := []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Noembed, atom.Noframes}
	return node.Type == html.ElementNode && slices.Contains(invisible, node.DataAtom)
}

// IsStruckOut reports whether an element is struck out. Some pages strike out the old rate beside the new rate.
func IsStruckOut(node *html.Node) bool {
	return node.DataAtom == atom.Del || node.DataAtom == atom.S || node.DataAtom == atom.Strike
}

// IsHidden reports whether an attribute hides an element. Do not call it for a locator's own element, because a price
// may be hidden until the user clicks.
func IsHidden(node *html.Node) bool {
	for _, attr := range node.Attr {
		switch attr.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(attr.Val), ""))
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// isTypeface reports whether an element only changes the look of its text, such as <b>.
func isTypeface(node *html.Node) bool {
	return slices.Contains([]atom.Atom{atom.B, atom.Strong, atom.I, atom.Em, atom.U, atom.Font, atom.Wbr}, node.DataAtom)
}
