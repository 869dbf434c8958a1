package source

// Challenge says by which mark a document is the challenge of a bot wall and not a page of the institution, "" when it is none.
// Whoever fetches asks it of answers that are errors anyhow; Parse asks it of documents in which nothing was found.
func (d *Document) Challenge() string {
	if len(d.Body) > textBytesMax || looksLike(d.Body) != "text" {
		return ""
	}
	return challengeMark(decoded(d))
}
