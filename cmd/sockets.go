package cmd

import (
	"net"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/node"
)

const (
	socketsVariable = "LISTEN_FDS"
	// redirectSocket is the FileDescriptorName of the socket for plain HTTP beside HTTPS. The other socket may have any
	// name.
	redirectSocket = "redirect"
)

// takeSockets passes the service manager's listening sockets (sd_listen_fds(3)) to the node. It returns their number.
func (p *commands) takeSockets(h *node.HTTP) (count int, err error) {
	if p.Getenv(socketsVariable) == "" {
		return 0, nil
	}
	sockets, err := activation.ListenersWithNames()
	if err != nil {
		return 0, exit.Errorf(exit.Usage, "sockets of the service manager: %w", err)
	}
	for name, listeners := range sockets {
		for _, listener := range listeners {
			count++
			target := &h.Listener
			if name == redirectSocket {
				target = &h.ACME.RedirectListener
			}
			if _, tcp := listener.(*net.TCPListener); !tcp || *target != nil {
				return 0, exit.Errorf(exit.Usage, "the service manager's socket %s: want one TCP socket for requests, and with --https one with FileDescriptorName=%s", name, redirectSocket)
			}
			*target = listener
		}
	}
	if h.ACME.RedirectListener != nil && h.ACME.Name == "" {
		return 0, exit.Errorf(exit.Usage, "the service manager's socket %s is only for --https: disable it", redirectSocket)
	}
	h.ListenerKept = h.Listener != nil
	return count, nil
}
