package doctor

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/cmd/internal/terminal"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/node"
	"github.com/tasard/tasard/node/core"
)

const (
	day = 24 * time.Hour
	// rehearsalDays is the number of days from the announcement until API keys are required, if neither the operator nor
	// the running node has set dates. It is one day more than the shortest notice.
	rehearsalDays = 15
	rehearsalPath = "/v1/rates/best?currency=USD&operation=buy"
)

// clientView is a request without an API key, and the response that the client gets at one time of the rehearsal (see
// the method rehearsal).
type clientView struct {
	Day     string    `json:"day"`
	At      time.Time `json:"at"`
	Request string    `json:"request"`
	Status  string    `json:"status"`
	Headers []string  `json:"headers"`
}

// rehearsal shows the responses that a client without an API key gets before and after keys become required.
func (d *doctor) rehearsal(ctx context.Context) {
	announced, required, description := d.plannedRequirement()
	views, err := d.rehearse(ctx, announced, required)
	if err != nil {
		d.add(findingFail, "keys", "", "rehearse required keys: %v", err)
		return
	}
	d.rehearsed = views
	d.add(findingOK, "keys", "", "%s: see the answers to a client without a key below", description)
}

// plannedRequirement returns when required keys are announced, and from when on they are required. It takes the times
// from --required-at, or from the announcement of the running node. If there is neither, it assumes an announcement
// now. description says where the times come from.
func (d *doctor) plannedRequirement() (announced, required time.Time, description string) {
	switch {
	case !d.o.requiredAt.IsZero():
		required = d.o.requiredAt
		if announced = d.Clock(); announced.After(required.Add(-account.KeyNoticeMin)) {
			announced = required.Add(-account.KeyNoticeMin)
		}
		return announced, required, "keys required at " + terminal.FormatInstant(required) + ", as asked"
	case d.node != nil && !d.node.RequiredAt.IsZero():
		return d.node.AnnouncedAt, d.node.RequiredAt, "keys required at " + terminal.FormatInstant(d.node.RequiredAt) + ", as announced"
	}
	announced = d.Clock()
	required = engine.DateOf(announced).AddDays(rehearsalDays).Start()
	return announced, required, "not announced; as if keys were required at " + terminal.FormatInstant(required)
}

// rehearse opens a node on a temporary directory, without a listener. It sets the clock of this node to three times and
// sends a request at each: when keys are announced, when they become required, and a day later.
func (d *doctor) rehearse(ctx context.Context, announced, required time.Time) (views []clientView, err error) {
	directory, err := os.MkdirTemp("", "tasard-doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	var now atomic.Pointer[time.Time]
	now.Store(new(announced.Round(0)))
	config := d.config()
	config.Dir, config.Clock = directory, func() time.Time { return *now.Load() }
	config.Reference = &node.ReferenceData{Catalogue: engine.DefaultCatalogue(), Sources: source.DefaultSet()}
	config.Monotonic = func() time.Duration { return now.Load().Sub(announced) } // follows config.Clock, so that the node sees no step of its clock
	coreConfig := config.Core(*config.Reference)
	coreConfig.HTTP.Harness = &httpapi.Harness{} // makes the Date header follow the clock of the node
	n, err := core.Open(coreConfig)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.System.Close()) }()
	select {
	case <-n.System.Ready():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, err := n.System.Announce(required, "doctor"); err != nil {
		return nil, err
	}
	first := required.Add(-account.KeyNoticeMin)
	if first.Before(announced) {
		first = announced
	}
	for _, step := range []struct {
		name string
		at   time.Time
	}{{"Day -14", first}, {"Day 0", required}, {"Day +1", required.Add(day)}} {
		now.Store(new(step.at.Round(0)))
		if err := publishSample(n.System, step.at); err != nil {
			return nil, err
		}
		view, err := requestView(n.Server, step.name, step.at)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

// publishSample publishes a rate, so that the response to the request (rehearsalPath) has one.
func publishSample(system *actors.System, at time.Time) error {
	_, err := system.Observe([]engine.Refresh{{
		SourceID: "doctor", ObservedAt: at,
		Observations: []engine.Observation{{InstitutionID: "popular", Currency: "USD", Buy: "59.00", Sell: "60.00"}},
	}})
	return err
}

// requestView sends a request for rehearsalPath over a connection in memory. It returns the status line and header of
// the response.
func requestView(server *httpapi.Server, name string, at time.Time) (clientView, error) {
	clientConn, serverConn := net.Pipe()
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.ServeConn(serverConn) }()
	view, err := exchange(clientConn, clientView{Day: name, At: at.UTC(), Request: "GET " + rehearsalPath})
	return view, errors.Join(err, clientConn.Close(), <-serveErr)
}

func exchange(conn net.Conn, view clientView) (clientView, error) {
	request, err := http.NewRequest(http.MethodGet, "http://tasard.test"+rehearsalPath, nil) //nolint:noctx // closing the pipe ends it
	if err != nil {
		return view, err
	}
	request.Close = true
	if err := request.Write(conn); err != nil {
		return view, err
	}
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return view, err
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case line == "":
			_, err = io.Copy(io.Discard, reader)
			return view, err
		case view.Status == "":
			view.Status = line
		case line != "Connection: close": // the response has that line only because of request.Close
			view.Headers = append(view.Headers, line)
		}
	}
}
