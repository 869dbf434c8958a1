package wal

import (
	"errors"
	"os"

	tidwall "github.com/tidwall/wal"
)

// segmentStore is a tidwall.Log (a log in segment files) with another Sync, which lets other goroutines run meanwhile
// (syncFile). It opens the newest segment a second time, because tidwall.Log does not give access to its open file. The
// kernel reports a failed write to both descriptors.
type segmentStore struct {
	*tidwall.Log
	log     *Log
	segment *os.File // the newest segment; nil: not opened yet
}

// Sync implements store. If the frame began or filled a segment, tidwall.Log has already synced the finished segment.
// Then Sync lets tidwall.Log sync the newest one too.
func (s *segmentStore) Sync() error {
	if p := s.log.placement(); p.opensSegment || p.fillsSegment {
		return errors.Join(s.Log.Sync(), s.closeSegment())
	}
	if s.segment == nil {
		var err error
		if s.segment, err = os.OpenFile(s.log.segments[len(s.log.segments)-1].path, fileModify, 0); err != nil {
			return err
		}
	}
	return syncFile(s.segment)
}

// Close implements store.
func (s *segmentStore) Close() error { return errors.Join(s.Log.Close(), s.closeSegment()) }

func (s *segmentStore) closeSegment() (err error) {
	if s.segment != nil {
		err, s.segment = s.segment.Close(), nil
	}
	return err
}
