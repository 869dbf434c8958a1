package wal

// FormatVersion is the version of the frames, marks and snapshots that this package writes. It reads all versions up to it.
const FormatVersion = formatVersion
