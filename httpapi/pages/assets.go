package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

const (
	assetsPath     = "/assets/"
	assetHashBytes = 8
	assetBytesMax  = 32 << 20 // of one, unpacked
)

// asset is a file that pages load. Its name changes with its content, so that it may be kept for ever.
type asset struct {
	kind   string // Content-Type
	plain  []byte // nil when it is made of packed for those few who don't take gzip
	packed []byte
}

// AddAsset serves a file under /assets/, its hash in its name: style.css becomes style.<hash>.css. Asset gives the path. It must be
// called before the first request, and panics when the name is taken.
func (f *Frame) AddAsset(name, contentType string, content []byte) {
	packed := bytes.Buffer{}
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = writer.Write(content)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		panic("pages: compress the asset " + name + ": " + err.Error())
	}
	f.addAsset(name, content, asset{contentType, content, packed.Bytes()})
}

// AddPackedAsset is AddAsset for content that is embedded compressed with gzip.
func (f *Frame) AddPackedAsset(name, contentType string, packed []byte) {
	f.addAsset(name, packed, asset{kind: contentType, packed: packed})
}

func (f *Frame) addAsset(name string, content []byte, a asset) {
	if _, taken := f.assetPaths[name]; taken {
		panic("pages: two assets are called " + name)
	}
	digest := sha256.Sum256(content)
	stem, extension, _ := strings.Cut(name, ".")
	hashed := stem + "." + hex.EncodeToString(digest[:assetHashBytes]) + "." + extension
	f.assetPaths[name], f.assets[hashed] = assetsPath+hashed, a
}

// Asset is the path of an asset. It panics when none has the name: names are the program's own.
func (f *Frame) Asset(name string) string {
	path, ok := f.assetPaths[name]
	if !ok {
		panic("pages: no asset is called " + name + "; add it with AddAsset")
	}
	return path
}

// serveAsset answers under /assets/.
func (f *Frame) serveAsset(w http.ResponseWriter, r *Request) {
	a, ok := f.assets[r.PathValue("name")]
	if !ok {
		f.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.kind)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	body := a.packed
	if takesGzip(r.Header) {
		header.Set("Content-Encoding", "gzip")
		header.Set("Vary", "Accept-Encoding")
	} else if body = a.plain; body == nil {
		var err error
		if body, err = unpacked(a.packed); err != nil {
			f.Fail(w, r, fmt.Errorf("unpack %s: %w", r.URL.Path, err))
			return
		}
	}
	f.send(w, r, body)
}

func unpacked(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(reader, assetBytesMax))
}

// takesGzip tells whether an answer may be compressed.
func takesGzip(header http.Header) bool {
	return fields.AcceptsGzip(fields.Lines(header.Values("Accept-Encoding")))
}
