package wal

// Room is nil while a batch of records of so many bytes would be taken, else ErrNoSpace, or why that can't be told. It writes nothing,
// and may be called at any time.
func (l *Log) Room(bytes int64) error {
	return l.disk.room(l.dir, l.o.ReserveBytes, bytes+entryBytesMax-BatchBytesMax)
}
