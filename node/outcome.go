package node

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tasard/tasard/node/metrics"
)

// outcome is the result of the operator's last action of one kind.
type outcome struct {
	mu      sync.Mutex
	current metrics.Outcome
}

func (o *outcome) record(ok bool, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.current.Known, o.current.OK = true, ok
	if ok {
		o.current.Success = at
	}
}

func (o *outcome) last() metrics.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current
}

// lastBackupFile is an empty file in the data directory. Its modification time is the time of the last complete backup,
// so that the time survives a restart.
const lastBackupFile = "last-backup"

func (n *Node) readLastBackup() {
	if info, err := os.Stat(filepath.Join(n.config.Dir, lastBackupFile)); err == nil {
		n.backups.record(true, info.ModTime())
	}
}

// recordBackup records the end of a backup. err is its error.
func (n *Node) recordBackup(err error) {
	now := n.config.Clock()
	n.backups.record(err == nil, now)
	if err != nil {
		return
	}
	path := filepath.Join(n.config.Dir, lastBackupFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G304: in the data directory
	if err == nil {
		err = errors.Join(file.Close(), os.Chtimes(path, now, now))
	}
	if err != nil {
		n.config.Logger.Warn("the time of the backup is lost at the next start", "cause", err.Error())
	}
}
