//go:build faults

package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	speedSpan     = 4 * time.Second
	speedLines    = 16 // connections to each node
	speedDepth    = 8  // requests in flight on each
	speedAccounts = 256
)

// counted is what a load was answered.
type counted struct{ good, limited, other int }

// hammer asks a node over one connection, as many requests at once as speedDepth says, until a moment. Each request has the next of the keys;
// without keys it has none. An answer costs this process little, so that the nodes are what is measured.
func hammer(address, from string, keys []string, end time.Time) (sum counted, err error) {
	dialer := net.Dialer{Timeout: askMax, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	line, err := dialer.Dial("tcp", address)
	if err != nil {
		return sum, err
	}
	defer line.Close()
	if err := line.SetDeadline(end.Add(askMax)); err != nil {
		return sum, err
	}
	in := bufio.NewReaderSize(line, 64<<10)
	for next := 0; time.Now().Before(end); {
		var out strings.Builder
		for range speedDepth {
			out.WriteString("GET /v1/rates/best?currency=USD&operation=buy&limit=5 HTTP/1.1\r\nHost: node\r\n")
			if len(keys) > 0 {
				out.WriteString("Authorization: Bearer " + keys[next%len(keys)] + "\r\n")
			}
			out.WriteString("\r\n")
			next++
		}
		if _, err := io.WriteString(line, out.String()); err != nil {
			return sum, err
		}
		for range speedDepth {
			status, err := skim(in)
			if err != nil {
				return sum, err
			}
			switch status {
			case "200":
				sum.good++
			case "429":
				sum.limited++
			default:
				sum.other++
			}
		}
	}
	return sum, nil
}

// skim reads one answer and keeps its status.
func skim(in *bufio.Reader) (string, error) {
	status, length := "", 0
	for {
		text, err := in.ReadSlice('\n')
		switch {
		case err != nil:
			return "", err
		case status == "" && len(text) > 12:
			status = string(text[9:12])
		case bytes.HasPrefix(text, []byte("Content-Length: ")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(text[16:]))); err != nil {
				return "", err
			}
		case len(text) == 2:
			_, err = in.Discard(length)
			return status, err
		}
	}
}

// together hammers several nodes and returns the answers of each second.
func (r *rig) together(nodes int, keys []string) counted {
	r.t.Helper()
	var mu sync.Mutex
	var done sync.WaitGroup
	var all counted
	end := time.Now().Add(speedSpan)
	for i := range nodes * speedLines {
		p := r.peers[i%nodes]
		own := keys
		if len(keys) > 0 { // every connection has accounts of its own
			part := len(keys) / (nodes * speedLines)
			own = keys[i*part : (i+1)*part]
		}
		done.Go(func() {
			sum, err := hammer(fmt.Sprintf("%s:%d", p.host, servePort), fmt.Sprintf("127.9.%d.%d", nodes, i+1), own, end)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.t.Errorf("node %d: %v", p.number, err)
			}
			all.good, all.limited, all.other = all.good+sum.good, all.limited+sum.limited, all.other+sum.other
		})
	}
	done.Wait()
	seconds := int(speedSpan / time.Second)
	return counted{all.good / seconds, all.limited / seconds, all.other / seconds}
}

// TestFaultsCluster_Speed counts what one, two and three nodes of a cluster answer, each with one processor, and what they answer with keys: whose
// requests are leased from the log. It has no goal of its own: nodes and load share this machine. The cluster is founded on the log of a node
// that was alone, which has the accounts.
func TestFaultsCluster_Speed(t *testing.T) {
	r := planRig(t, program(t), nil)
	r.env = []string{"GOMAXPROCS=1"}
	keys := prepare(t, r.peers[0].data, speedAccounts)
	r.startAll()
	if !r.level() {
		t.Fatal("the nodes do not come to the same record")
	}
	for nodes := 1; nodes <= 3; nodes++ {
		open, keyed := r.together(nodes, nil), r.together(nodes, keys)
		for what, sum := range map[string]counted{"without a key": open, "with keys": keyed} {
			if sum.good == 0 {
				t.Errorf("%d nodes answer nothing %s: %+v", nodes, what, sum)
			}
		}
		figure(t, "%d of 3 nodes asked, one processor each, %d connections to each: %d answers a second without a key, %d with keys of %d accounts (%d and %d more are 429, %d and %d something else)",
			nodes, speedLines, open.good, keyed.good, speedAccounts, open.limited, keyed.limited, open.other, keyed.other)
	}
}
