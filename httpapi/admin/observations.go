package admin

import (
	"context"
	"net/http"

	"github.com/tasard/tasard/engine"
)

// observationsBytesMax is the largest size of Observations as JSON. tasard import sends batches of 2 to 3 MB.
const observationsBytesMax = 64 << 20

// Observations are rates from a file that an operator imports. The response is the receipt of the engine: which of them
// were refused, and why.
type Observations struct {
	Refreshes []engine.Refresh `json:"refreshes"`
}

func (Observations) bytesMax() int { return observationsBytesMax }

func (s *Server) importObservations(r *http.Request, body Observations) (engine.Receipt, error) {
	receipt, err := s.config.Node.Observe(body.Refreshes)
	if err == nil {
		s.config.Logger.Info("observations imported by an operator", "accepted", receipt.Accepted, "new", receipt.Changed, "refused", len(receipt.Refused),
			"by", authorName(r.Context(), Author{}))
	}
	return receipt, err
}

// Importer sends observations to a running node. It implements engine.Ingester.
type Importer struct {
	Context context.Context //nolint:containedctx // the methods of engine.Ingester have none
	Client  *Client
}

// Observe implements engine.Ingester. Its errors are those of Client.
func (i Importer) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	return ImportObservations.Call(i.Context, i.Client, Observations{refreshes})
}
