package rendered

import (
	"container/list"
	"sync"
	"time"
)

// Cache stores values, such as bodies, until they expire. Beyond its limits it drops the least recently used values. It
// is safe for concurrent use.
type Cache[K comparable, V any] struct {
	entriesMax, bytesMax int

	mu      sync.Mutex
	entries map[K]*list.Element // elements of byUse
	byUse   list.List           // all *entry[K, V], most recently used first
	bytes   int                 // sum of entry.bytes
}

// Kept is a value for a Cache.
type Kept[V any] struct {
	Value V
	Until time.Time // expiry of the value
	Bytes int       // size of the value
}

type entry[K comparable, V any] struct {
	key   K
	bytes int // guarded by Cache.mu

	mu     sync.Mutex // locked during build, so that concurrent requests build a value only once
	kept   Kept[V]
	madeAt time.Time // if this is later than now, the clock was set back, and the value is built again
}

// NewCache returns a cache for at most entriesMax values, whose sizes are at most bytesMax in total.
func NewCache[K comparable, V any](entriesMax, bytesMax int) *Cache[K, V] {
	return &Cache[K, V]{entriesMax: entriesMax, bytesMax: bytesMax, entries: map[K]*list.Element{}}
}

// Get returns the value of a key. If the value is missing or expired, Get calls build with the last value or the zero
// value, and stores the result. It does not store errors: after one it calls build again.
func (c *Cache[K, V]) Get(key K, now time.Time, build func(last V) (Kept[V], error)) (V, error) {
	e := c.entryOf(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !now.Before(e.madeAt) && now.Before(e.kept.Until) {
		return e.kept.Value, nil
	}
	made, err := build(e.kept.Value)
	if err != nil {
		return *new(V), err
	}
	e.kept, e.madeAt = made, now
	c.resize(e, made.Bytes)
	return made.Value, nil
}

// entryOf returns the entry of a key, and creates it if necessary.
func (c *Cache[K, V]) entryOf(key K) *entry[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		element = c.byUse.PushFront(&entry[K, V]{key: key})
		c.entries[key] = element
		c.shrink()
	}
	c.byUse.MoveToFront(element)
	return element.Value.(*entry[K, V])
}

// resize sets the size of an entry, unless the entry has been dropped in the meantime.
func (c *Cache[K, V]) resize(e *entry[K, V], bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.entries[e.key]; element != nil && element.Value == e {
		c.bytes += bytes - e.bytes
		e.bytes = bytes
		c.shrink()
	}
}

// shrink drops entries until the cache is within its limits.
func (c *Cache[K, V]) shrink() {
	for len(c.entries) > c.entriesMax || c.bytes > c.bytesMax {
		c.remove(c.byUse.Back())
	}
}

func (c *Cache[K, V]) remove(element *list.Element) {
	e := element.Value.(*entry[K, V])
	c.byUse.Remove(element)
	delete(c.entries, e.key)
	c.bytes -= e.bytes
}
