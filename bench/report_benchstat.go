package main

import (
	"errors"
	"io"
)

func (r *report) writeBenchstat(w io.Writer) error { return errors.ErrUnsupported }
