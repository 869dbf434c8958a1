//go:build !linux

package wal

import "os"

// dropPageCache does nothing. On these systems the machine must be restarted after a failed sync, before Open.
func dropPageCache(*os.File) error { return nil }
