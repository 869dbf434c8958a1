package source

// Parse reads one page of the source. It is pure: the same bytes give the same answer. The error is a *Failure.
func (d *Definition) Parse(page int, doc *Document) (Answer, error) {
	if page < 0 || page >= len(d.Pages) {
		return Answer{}, Fail(Internal, "%s has no page %d", d.ID, page)
	}
	return Answer{}, Fail(Internal, "%s", doc.URL)
}
