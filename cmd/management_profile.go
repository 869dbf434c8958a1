package cmd

import (
	"net/http"
	"net/http/pprof" // what it registers by itself is on a mux that nobody serves
)

// profilePath is where go tool pprof looks, over the socket.
const profilePath = "/debug/pprof/"

// profileRoutes let an operator see where the node's time and memory go.
func profileRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+profilePath, pprof.Index)
	mux.HandleFunc("GET "+profilePath+"profile", pprof.Profile)
	mux.HandleFunc("GET "+profilePath+"trace", pprof.Trace)
	mux.HandleFunc("GET "+profilePath+"symbol", pprof.Symbol)
}
