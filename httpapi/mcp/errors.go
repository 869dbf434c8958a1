package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tasard/tasard/httpapi/client"
)

// explain puts before an error what the model, or the person in front of it, can do about it.
func (s *Server) explain(err error) error {
	var refused *client.Error
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, client.ErrNoResponse) {
		return fmt.Errorf("the node at %s gives no answer. Tell the user; whoever runs this server should look at the node, and at --url: %w", s.client.BaseURL(), err)
	}
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("the node wants an API key that is in force. Whoever runs this server gives it one with --key-file; one is made at %s/account: %w", s.client.BaseURL(), err)
	case refused.Status == http.StatusTooManyRequests:
		return fmt.Errorf("no request is left. Don't ask again before %s have passed, and tell the user: %w", refused.RetryAfter, err)
	case refused.Status == http.StatusBadRequest:
		return fmt.Errorf("the parameters are not right. Correct what is named, then call again; list_currencies and list_institutions tell what there is: %w", err)
	case refused.Status >= http.StatusInternalServerError:
		return fmt.Errorf("the node can't answer now. Call once more in a minute, then tell the user: %w", err)
	}
	return err
}
