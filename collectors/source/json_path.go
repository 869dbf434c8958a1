package source

import (
	"cmp"
	"strconv"
	"strings"
)

// follow goes a path such as d.results[0].rate; "" is the value itself. nil when the path ends before its end. A key that
// stands twice in an object on the way fails the document: programs disagree on which of both counts.
func (v *jsonValue) follow(path string) (*jsonValue, *Failure) {
	if path == "" {
		return v, nil
	}
	at := v
	for part := range strings.SplitSeq(path, ".") {
		name, indices, _ := strings.Cut(part, "[")
		if name != "" {
			var failure *Failure
			if at, failure = at.member(name, path); at == nil || failure != nil {
				return nil, failure
			}
		}
		if indices == "" {
			continue
		}
		for index := range strings.SplitSeq(strings.TrimSuffix(indices, "]"), "][") {
			if index == "" && at.kind == jsonList && len(at.items) > 1 {
				return nil, Fail(Layout, "%s wants a list of one entry, and there are %d", quoted(path), len(at.items))
			}
			number, err := strconv.Atoi(cmp.Or(index, "0"))
			if err != nil || number < 0 || at.kind != jsonList || number >= len(at.items) {
				return nil, nil
			}
			at = at.items[number]
		}
	}
	return at, nil
}

func (v *jsonValue) member(name, path string) (*jsonValue, *Failure) {
	if v.kind != jsonObject {
		return nil, nil
	}
	var value *jsonValue
	for _, member := range v.members {
		if member.key != name {
			continue
		}
		if value != nil {
			return nil, Fail(Value, "the key %s stands twice in one object, on the path %s", quoted(name), quoted(path))
		}
		value = member.value
	}
	return value, nil
}
