package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

const (
	assetsPath     = "/assets/"
	assetHashBytes = 8
	assetBytesMax  = 32 << 20 // largest size of one asset, uncompressed
)

// asset is a static file. Its URL contains a hash of its content, so browsers may cache it forever.
type asset struct {
	contentType string
	body        *rendered.Body
	packed      []byte // the file, if it is compressed with gzip; body is nil
}

// AddAssets serves files under /assets/, each with a hash in its name: style.css becomes style.<hash>.css. A file with
// the suffix .gz is compressed, and is served without the suffix. AddAssets must be called before the first request. It
// panics if a file is missing or if two assets have the same name.
func (f *Frame) AddAssets(files fs.FS, names ...string) {
	contentTypes := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, file := range names {
		content, err := fs.ReadFile(files, file)
		if err != nil {
			panic("pages: read the embedded asset: " + err.Error())
		}
		name, isGzip := strings.CutSuffix(path.Base(file), ".gz")
		if _, exists := f.assetPaths[name]; exists {
			panic("pages: two assets have the name " + name)
		}
		digest := sha256.Sum256(content)
		stem, extension, _ := strings.Cut(name, ".")
		hashed := stem + "." + hex.EncodeToString(digest[:assetHashBytes]) + "." + extension
		made := asset{contentType: contentTypes[path.Ext(name)], packed: content}
		if !isGzip {
			made.body, made.packed = rendered.Undated(content), nil
		}
		f.assetPaths[name], f.assets[hashed] = assetsPath+hashed, made
	}
}

// Asset returns the URL path of the asset that AddAssets added under a name. It panics if there is none.
func (f *Frame) Asset(name string) string {
	path, ok := f.assetPaths[name]
	if !ok {
		panic("pages: no asset has the name " + name + "; add it with AddAssets")
	}
	return path
}

func (f *Frame) serveAsset(w http.ResponseWriter, r *Request) {
	a, ok := f.assets[r.PathValue("name")]
	if !ok {
		f.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	switch {
	case a.body != nil:
		a.body.Send(w, r.Request, http.StatusOK)
	case fields.AcceptsGzip(fields.Lines(r.Header.Values("Accept-Encoding"))):
		header.Set("Content-Encoding", "gzip")
		header.Set("Vary", "Accept-Encoding")
		f.send(w, r, a.packed)
	default:
		plain, err := gunzip(a.packed)
		if err != nil {
			f.Fail(w, r, fmt.Errorf("unpack %s: %w", r.URL.Path, err))
			return
		}
		f.send(w, r, plain)
	}
}

func gunzip(compressed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(reader, assetBytesMax))
}
