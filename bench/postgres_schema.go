package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/client"
)

// publishedRate is a rate as the interface shows it, in its order. The yardstick writes it as texts, which the database makes; what the node says is
// read as a client.Rate.
type publishedRate struct {
	InstitutionID   string  `json:"institutionId"`
	Currency        string  `json:"currency"`
	QuoteCurrency   string  `json:"quoteCurrency"`
	Buy             *string `json:"buy"`
	Sell            *string `json:"sell"`
	Channel         string  `json:"channel"`
	Kind            string  `json:"kind"`
	EffectiveDate   *string `json:"effectiveDate"`
	PublishedAt     *string `json:"publishedAt"`
	UpstreamSource  *string `json:"upstreamSource"`
	ID              string  `json:"id"`
	InstitutionName string  `json:"institutionName"`
	InstitutionType string  `json:"institutionType"`
	Website         string  `json:"website"`
	SourceID        string  `json:"sourceId"`
	SourceName      string  `json:"sourceName"`
	SourceURL       string  `json:"sourceUrl"`
	CollectedAt     string  `json:"collectedAt"`
	LastCheckedAt   string  `json:"lastCheckedAt"`
	ExpiresAt       string  `json:"expiresAt"`
	Priority        int64   `json:"priority"`
	Manual          bool    `json:"manual"`
	Stale           bool    `json:"stale"`
	DatePrecision   string  `json:"datePrecision"`
}

// publishedPage is an answer of best.
type publishedPage struct {
	Data []publishedRate `json:"data"`
	Meta struct {
		Total         int    `json:"total"`
		NextCursor    *int   `json:"nextCursor"`
		GeneratedAt   string `json:"generatedAt"`
		QuoteCurrency string `json:"quoteCurrency"`
	} `json:"meta"`
	Operation string `json:"operation,omitempty"`
}

// readPublished asks a node for every rate that it publishes.
func readPublished(ctx context.Context, address, key string) ([]client.Rate, error) {
	node, err := client.New(client.Config{
		BaseURL: "http://" + address, Key: client.Secret(key), HTTPClient: &http.Client{Timeout: answerMax, Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		return nil, err
	}
	var rates []client.Rate
	for rate, err := range node.AllRates(ctx, client.Filter{}) {
		if err != nil {
			return nil, fmt.Errorf("read the rates of the node: %w", err)
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

// databaseSchema is that of a site which reads rates a thousand times for each time that one is written: a rate carries the names
// that are shown with it, and each ranking has an index that gives its rows in order and tells from itself which are current.
// "ranked" is false for what an inactive institution publishes. Decimals have no fixed scale, so that 59.30 stays 59.30. Half of each
// page of accounts is left free, so that a counter is written beside its old version and no index is touched.
const databaseSchema = `
CREATE TABLE institutions (
	id text PRIMARY KEY, name text NOT NULL, type text NOT NULL, website text NOT NULL);
CREATE TABLE sources (
	id text PRIMARY KEY, name text NOT NULL, url text NOT NULL);
CREATE TABLE rates (
	institution_id text NOT NULL REFERENCES institutions, currency text NOT NULL, channel text NOT NULL, kind text NOT NULL,
	buy numeric, sell numeric, effective_date date, published_at timestamptz, upstream_source text,
	institution_name text NOT NULL, institution_type text NOT NULL, website text NOT NULL,
	source_id text NOT NULL REFERENCES sources, source_name text NOT NULL, source_url text NOT NULL,
	collected_at timestamptz NOT NULL, last_checked_at timestamptz NOT NULL, expires_at timestamptz NOT NULL,
	priority bigint NOT NULL, manual boolean NOT NULL, ranked boolean NOT NULL,
	PRIMARY KEY (currency, institution_id, channel, kind));
CREATE INDEX rates_to_buy ON rates (currency, sell, priority, collected_at DESC, institution_id, channel)
	INCLUDE (expires_at) WHERE kind = 'commercial' AND sell IS NOT NULL AND ranked;
CREATE INDEX rates_to_sell ON rates (currency, buy DESC, priority, collected_at DESC, institution_id, channel)
	INCLUDE (expires_at) WHERE kind = 'commercial' AND buy IS NOT NULL AND ranked;
CREATE TABLE accounts (
	id bigint PRIMARY KEY, day_limit bigint NOT NULL, minute_limit bigint NOT NULL,
	day date NOT NULL, day_spent bigint NOT NULL, minute timestamptz NOT NULL, minute_spent bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE api_keys (
	digest bytea PRIMARY KEY, account_id bigint NOT NULL REFERENCES accounts, revoked_at timestamptz);
`

// fillDatabase writes what the node publishes, and an account for each key, and leaves the tables as they are after some quiet time.
func fillDatabase(ctx context.Context, dir string, rates []client.Rate, keys []string) (err error) {
	conn, err := pgx.Connect(ctx, connectionString(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, databaseSchema); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	tables, err := tablesOf(rates, keys)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("fill the table %s: %w", t.name, err)
		}
	}
	for _, statement := range []string{"VACUUM (FREEZE, ANALYZE)", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// connectionString finds the database in the cluster of a directory.
func connectionString(dir string) string {
	return fmt.Sprintf("host=%s user=%s dbname=postgres sslmode=disable", dir, clusterUser)
}

// tableRows is what goes into one table.
type tableRows struct {
	name    string
	columns []string
	rows    [][]any // as the library wants them
}

func newTable(name, columns string) *tableRows {
	return &tableRows{name: name, columns: strings.Fields(columns)}
}

func (t *tableRows) add(values ...any) { t.rows = append(t.rows, values) }

// tablesOf are the rows of all tables, in an order that keeps the references.
func tablesOf(rates []client.Rate, keys []string) ([]*tableRows, error) {
	institutions := newTable("institutions", "id name type website")
	sources := newTable("sources", "id name url")
	published := newTable("rates", "institution_id currency channel kind buy sell effective_date published_at upstream_source "+
		"institution_name institution_type website source_id source_name source_url collected_at last_checked_at expires_at priority manual ranked")
	var knownInstitutions, knownSources []string
	for i := range rates {
		r := &rates[i]
		if !slices.Contains(knownInstitutions, r.InstitutionID) {
			knownInstitutions = append(knownInstitutions, r.InstitutionID)
			institutions.add(r.InstitutionID, r.InstitutionName, r.InstitutionType, r.Website)
		}
		if !slices.Contains(knownSources, r.SourceID) {
			knownSources = append(knownSources, r.SourceID)
			sources.add(r.SourceID, r.SourceName, r.SourceURL)
		}
		row, err := rowOf(r)
		if err != nil {
			return nil, fmt.Errorf("the rate %s: %w", r.ID, err)
		}
		published.add(row...)
	}
	accounts := newTable("accounts", "id day_limit minute_limit day day_spent minute minute_spent")
	apiKeys := newTable("api_keys", "digest account_id")
	long := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, key := range keys {
		digest, known := engine.ReadKey([]byte(key))
		if !known {
			return nil, fmt.Errorf("key %d of the fixture is none", i)
		}
		accounts.add(int64(i), int64(accountDayLimit), int64(accountMinuteLimit), long, int64(0), long, int64(0))
		apiKeys.add(digest[:], int64(i))
	}
	return []*tableRows{institutions, sources, published, accounts, apiKeys}, nil
}

// rowOf is a rate in the order of its columns.
func rowOf(r *client.Rate) ([]any, error) {
	var problems []error
	decimal := func(side *client.Decimal) (value pgtype.Numeric) {
		if side != nil {
			problems = append(problems, value.Scan(string(*side)))
		}
		return value
	}
	var effective *time.Time
	if d := r.EffectiveDate; d != nil {
		at := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
		effective = &at
	}
	row := []any{
		r.InstitutionID, r.Currency, string(r.Channel), string(r.Kind), decimal(r.Buy), decimal(r.Sell), effective, r.PublishedAt, r.UpstreamSource,
		r.InstitutionName, r.InstitutionType, r.Website, r.SourceID, r.SourceName, r.SourceURL, r.CollectedAt, r.LastCheckedAt, r.ExpiresAt,
		r.Priority, r.Manual, true,
	}
	return row, errors.Join(problems...)
}
