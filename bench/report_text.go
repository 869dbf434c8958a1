package main

import (
	"errors"
	"io"
)

func (r *report) writeText(w io.Writer) error { return errors.ErrUnsupported }
