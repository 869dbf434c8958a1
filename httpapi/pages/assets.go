package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/tasard/tasard/httpapi/internal/rendered"
)

const (
	assetsPath     = "/assets/"
	assetHashBytes = 8
)

// asset is a static file. The URL contains a hash of the content, so browsers may cache the file forever.
type asset struct {
	contentType string
	body        func() *rendered.Body
}

// AddAssets serves files under /assets/ with a hash in the name: style.css becomes style.<hash>.css. A file with the
// suffix .gz is decompressed and served without the suffix. Call AddAssets before the first request. It panics if a
// file is missing, and if two assets have the same name.
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
		f.assetPaths[name] = assetsPath + hashed
		f.assets[hashed] = asset{contentTypes[path.Ext(name)], sync.OnceValue(func() *rendered.Body {
			if isGzip {
				return rendered.Undated(gunzip(content))
			}
			return rendered.Undated(content)
		})}
	}
}

// Asset returns the URL path of an added asset. It panics for an unknown name.
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
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	a.body().Send(w, r.Request, http.StatusOK)
}

// gunzip decompresses an embedded file. It panics if the file is not compressed with gzip.
func gunzip(compressed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		panic("pages: unpack an asset: " + err.Error())
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		panic("pages: unpack an asset: " + err.Error())
	}
	return plain
}
