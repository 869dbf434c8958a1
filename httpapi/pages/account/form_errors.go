package account

import (
	"net/http"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/pages"
)

// formView is what the user entered in the forms of a page, and the result. Messages are keys of pages.Texts.
type formView struct {
	email, name string
	fieldErrs   map[string]string // error messages by name of the field
	formErr     *formError        // may be nil
	note        string            // success message, or ""
}

// formError is an error about a whole form, not one of its fields.
type formError struct {
	Key    string // the text of the error has the key "fault." + Key
	Status int
	Wait   time.Duration // how long the user must wait; 0 is not shown
}

// secondsMax is the maximum wait shown in seconds.
const secondsMax = 120 * time.Second

// formErrorOf converts an error to a formError. For an internal error it returns nil.
func formErrorOf(err error) *formError {
	status, wait := pages.StatusOf(err)
	if status == http.StatusInternalServerError {
		return nil
	}
	return &formError{string(engine.CodeOf(err)), status, wait}
}

// statusOf returns the HTTP status of a page: 422 after an error in a field, otherwise the status of the form error, or
// 200. It also sets Retry-After if the user must wait.
func (v *pageContext) statusOf(view formView) int {
	switch f := view.formErr; {
	case len(view.fieldErrs) > 0:
		return http.StatusUnprocessableEntity
	case f == nil:
		return http.StatusOK
	case f.Wait > 0:
		v.w.Header().Set("Retry-After", fields.RetryAfter(f.Wait))
	}
	return view.formErr.Status
}

// notices returns boxes for the form's success message and error, if any.
func (v *pageContext) notices(view formView) Node {
	var boxes Group
	if view.note != "" {
		boxes = append(boxes, Div(Class("notice good"), Role("status"), P(v.l.T(view.note))))
	}
	if f := view.formErr; f != nil {
		key, unit := "wait.seconds", time.Second
		if f.Wait > secondsMax {
			key, unit = "wait.minutes", time.Minute
		}
		wait := int((f.Wait + unit - 1) / unit) // rounded up
		boxes = append(boxes, Div(Class("notice bad"), Role("alert"), P(v.l.T("fault."+f.Key), If(f.Wait > 0, Text(" "+v.l.Count(key, wait))))))
	}
	return boxes
}

// form returns a form. path is relative to rootPage.
func (v *pageContext) form(path, class string, children ...Node) Node {
	return Form(If(class != "", Class(class)), Method("post"), v.l.Action(rootPage+path), Group(children))
}

// field returns an input field with label, error message and help text (may be ""). label is the key of the label.
func (v *pageContext) field(view formView, name, label, help string, attributes ...Node) Node {
	described, errKey := "", view.fieldErrs[name]
	if help != "" {
		described = name + "-help"
	}
	if errKey != "" {
		described = strings.TrimSpace(described + " " + name + "-fault")
	}
	return Div(Class("field"), Label(For(name), v.l.T(label)),
		Input(ID(name), Name(name), Group(attributes), If(described != "", Aria("describedby", described)), If(errKey != "", Aria("invalid", "true"))),
		If(errKey != "", P(Class("problem"), ID(name+"-fault"), Role("alert"), v.l.T(errKey))),
		If(help != "", P(Class("fine"), ID(name+"-help"), Text(help))))
}

func (v *pageContext) emailField(view formView, help string) Node {
	return v.field(view, "email", "welcome.email", help, Type("email"), Attr("inputmode", "email"), AutoComplete("email"), MaxLength("254"), Required(), Value(view.email))
}

func submit(class string, children ...Node) Node {
	return Button(Class(class), Type("submit"), Group(children))
}
