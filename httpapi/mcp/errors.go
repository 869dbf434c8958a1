package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tasard/tasard/httpapi/client"
)

// explain adds advice for the model or its user to an error.
func (s *Server) explain(err error) error {
	var apiErr *client.Error
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, client.ErrNoResponse) {
		return fmt.Errorf("the node at %s does not answer. Tell the user; the operator of this server should check the node and --url: %w", s.client.BaseURL(), err)
	}
	if !errors.As(err, &apiErr) {
		return err
	}
	switch {
	case apiErr.Status == http.StatusUnauthorized:
		return fmt.Errorf("the node requires a valid API key. The operator of this server sets one with --key-file; %s/account creates keys: %w", s.client.BaseURL(), err)
	case apiErr.Status == http.StatusTooManyRequests:
		return fmt.Errorf("the quota is used up. Wait %s before the next call, and tell the user: %w", apiErr.RetryAfter, err)
	case apiErr.Status == http.StatusBadRequest:
		return fmt.Errorf("the parameters are not valid. Correct them and call again; list_currencies and list_institutions have the valid values: %w", err)
	case apiErr.Status >= http.StatusInternalServerError:
		return fmt.Errorf("the node can't answer now. Call again in a minute; if that fails too, tell the user: %w", err)
	}
	return err
}
