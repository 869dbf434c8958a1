package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tasard/tasard/engine"
)

// The two ways of answering: see newPostgres.
const (
	wayQuota     = "quota"
	wayReadsOnly = "reads-only"
)

const (
	// Connections of the pool. Reads keep the one core busy with a few; requests that are counted wait for the disk, and more of
	// them share one flush.
	readConnections  = 4
	quotaConnections = 32
	// Limits of an account: those of the node under load.
	accountDayLimit    = 100_000_000
	accountMinuteLimit = 60_000
)

// rankingColumns are read by scanRate in this order.
const rankingColumns = `r.total, r.institution_id, r.buy::text AS buy, r.sell::text AS sell, r.channel, r.effective_date, r.published_at,
	r.upstream_source, i.name, i.type, i.website, r.source_id, s.name AS source_name, s.url, r.collected_at, r.last_checked_at, r.expires_at,
	r.priority, r.manual`

// rankingQuery cuts a page in the order of the index; %[1]s is the side, %[2]s its direction.
const rankingQuery = `SELECT ` + rankingColumns + ` FROM (
		SELECT *, count(*) OVER () AS total FROM rates
		WHERE currency = $1 AND kind = 'commercial' AND %[1]s IS NOT NULL AND ranked AND expires_at > now()
		ORDER BY %[1]s %[2]s, priority, collected_at DESC, institution_id, channel LIMIT $2 OFFSET $3
	) r JOIN institutions i ON i.id = r.institution_id JOIN sources s ON s.id = r.source_id
	ORDER BY r.%[1]s %[2]s, r.priority, r.collected_at DESC, r.institution_id, r.channel`

// countedQuery counts the request and answers it in one statement, so that there is one way to the database and back. The minute
// is the clock's, which is less work than the node's exact sliding one. No row: the key is unknown, or a limit is reached.
const countedQuery = `WITH admitted AS (
		UPDATE accounts a SET
			day_spent = CASE WHEN a.day = t.day THEN a.day_spent + 1 ELSE 1 END, day = t.day,
			minute_spent = CASE WHEN a.minute = t.minute THEN a.minute_spent + 1 ELSE 1 END, minute = t.minute
		FROM api_keys k, (SELECT (now() AT TIME ZONE 'America/Santo_Domingo')::date AS day, date_trunc('minute', now()) AS minute) t
		WHERE k.digest = $4 AND k.revoked_at IS NULL AND a.id = k.account_id
			AND (a.day <> t.day OR a.day_spent < a.day_limit) AND (a.minute <> t.minute OR a.minute_spent < a.minute_limit)
		RETURNING a.day_limit, a.day_spent, a.minute_limit, a.minute_spent)
	SELECT admitted.*, page.* FROM admitted LEFT JOIN LATERAL (%s) page ON true`

// knownQuery tells why there was no row.
const knownQuery = `SELECT EXISTS (SELECT FROM api_keys WHERE digest = $1 AND revoked_at IS NULL)`

// postgresServer answers /v1/rates/best.
type postgresServer struct {
	pool  *pgxpool.Pool
	quota bool
	// queries by operation
	queries map[engine.Operation]string
}

// runPostgres is the subcommand: bench postgres DIRECTORY WAY. It says on out where it listens, and ends with the context.
func runPostgres(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 || args[1] != wayQuota && args[1] != wayReadsOnly {
		return fmt.Errorf("bench postgres: want a directory and %s or %s, found %q", wayQuota, wayReadsOnly, args)
	}
	s := &postgresServer{quota: args[1] == wayQuota, queries: map[engine.Operation]string{
		engine.Buy: fmt.Sprintf(rankingQuery, "sell", "ASC"), engine.Sell: fmt.Sprintf(rankingQuery, "buy", "DESC"),
	}}
	config, err := pgxpool.ParseConfig(connectionString(args[0]))
	if err != nil {
		return fmt.Errorf("configure the pool: %w", err)
	}
	config.MaxConns = readConnections
	if s.quota {
		config.MaxConns = quotaConnections
		for operation, query := range s.queries {
			s.queries[operation] = fmt.Sprintf(countedQuery, query)
		}
	}
	config.MinConns = config.MaxConns
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open the pool: %w", err)
	}
	defer s.pool.Close()
	return s.serve(ctx, out)
}

// serve answers on a free port of the loopback interface until the context ends.
func (s *postgresServer) serve(ctx context.Context, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := fmt.Fprintln(out, listeningText+listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rates/best", s.best)
	server := &http.Server{Handler: mux, ReadTimeout: readTimeoutDefault, WriteTimeout: writeTimeoutDefault, IdleTimeout: idleTimeoutDefault}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMax/2)
	defer cancel()
	err = server.Shutdown(shutdown)
	if ended := <-ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// bestQuery is what is asked for.
type bestQuery struct {
	currency      string
	operation     engine.Operation
	limit, cursor int
}

func readBestQuery(values url.Values) (q bestQuery, err error) {
	q = bestQuery{currency: values.Get("currency"), operation: engine.Operation(values.Get("operation")), limit: 100}
	if len(q.currency) != 3 || q.operation != engine.Buy && q.operation != engine.Sell {
		return q, errors.New("currency is three capital letters, operation is buy or sell")
	}
	if text := values.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > 200 {
			return q, errors.New("limit is a number from 1 to 200")
		}
	}
	if text := values.Get("cursor"); text != "" {
		if q.cursor, err = strconv.Atoi(text); err != nil || q.cursor < 0 || q.cursor > 100_000 {
			return q, errors.New("cursor is a number from 0 to 100000")
		}
	}
	return q, nil
}

// errRefused and errUnknownKey are why nobody is answered.
var (
	errRefused    = errors.New("a limit of the account is reached")
	errUnknownKey = errors.New("the key is missing, unknown or revoked")
)

func (s *postgresServer) best(w http.ResponseWriter, r *http.Request) {
	q, err := readBestQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page, err := s.page(r.Context(), w.Header(), &q, r.Header.Get("Authorization"))
	switch {
	case errors.Is(err, errUnknownKey):
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	case errors.Is(err, errRefused):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(page); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body.Truncate(body.Len() - 1) // the line's end
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(body.Bytes()) // a caller who is gone needs no answer
}

// page asks the database.
func (s *postgresServer) page(ctx context.Context, header http.Header, q *bestQuery, authorization string) (*publishedPage, error) {
	args := []any{q.currency, q.limit, q.cursor}
	var digest engine.Digest
	if s.quota {
		var known bool
		key, _ := strings.CutPrefix(authorization, "Bearer ")
		if digest, known = engine.ReadKey([]byte(key)); !known {
			return nil, errUnknownKey
		}
		args = append(args, digest[:])
	}
	rows, err := s.pool.Query(ctx, s.queries[q.operation], args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	page := &publishedPage{Data: make([]publishedRate, 0, q.limit), Operation: string(q.operation)}
	page.Meta.GeneratedAt, page.Meta.QuoteCurrency = time.Now().UTC().Format(time.RFC3339), engine.QuoteCurrency
	var read rankedRow
	for rows.Next() {
		if err := read.scan(rows, s.quota); err != nil {
			return nil, err
		}
		if read.total != nil { // null: admitted, and nothing is published
			page.Meta.Total = int(*read.total)
			page.Data = append(page.Data, read.rate(q.currency))
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if s.quota {
		if err := s.admitted(ctx, header, &read, digest); err != nil {
			return nil, err
		}
	}
	if next := q.cursor + len(page.Data); next < page.Meta.Total {
		page.Meta.NextCursor = &next
	}
	return page, nil
}

// admitted writes the limits, or tells why there was no row.
func (s *postgresServer) admitted(ctx context.Context, header http.Header, read *rankedRow, digest engine.Digest) error {
	if read.dayLimit > 0 {
		header.Set("X-RateLimit-Limit", strconv.FormatInt(read.minuteLimit, 10))
		header.Set("X-RateLimit-Remaining", strconv.FormatInt(min(read.minuteLimit-read.minuteSpent, read.dayLimit-read.daySpent), 10))
		return nil
	}
	var known bool
	if err := s.pool.QueryRow(ctx, knownQuery, digest[:]).Scan(&known); err != nil {
		return err
	}
	if known {
		return errRefused
	}
	return errUnknownKey
}
