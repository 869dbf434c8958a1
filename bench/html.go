package main

import (
	"errors"
	"io"
)

func (r *report) writeHTML(w io.Writer) error { return errors.ErrUnsupported }
