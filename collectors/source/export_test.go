package source

import "testing/fstest"

func Read(name string, data []byte) (*Definition, error) {
	files := fstest.MapFS{name: {Data: data}, "ca/popular.pem": {}}
	set, err := NewSet().Extend(files, ".")
	if err != nil {
		if joined, ok := err.(interface{ Unwrap() []error }); ok { // of each file
			err = joined.Unwrap()[0]
		}
		return nil, err
	}
	return set.Definitions()[0], nil
}
