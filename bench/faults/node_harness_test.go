//go:build faults

package faults

import (
	"net/http"
	"testing"

	"github.com/tasard/tasard/httpapi/apitest"
)

// TestFaultsHarness_EndToEnd signs somebody up at the real program, as the other tests do, kills it, and looks for the key.
func TestFaultsHarness_EndToEnd(t *testing.T) {
	dir := t.TempDir() + "/data"
	keys := prepare(t, dir, 3, apitest.KeysRequired())
	office := newPostOffice(t)
	n := start(t, dir, office.args()...)
	c := newCaller(addressOf(30))
	defer c.close()
	token, err := office.session(c, n.url, "ana@example.com")
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := createKey(c, n.url, token, "one")
	if err != nil || made.Secret == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	n.kill()
	n = start(t, dir, office.args()...)
	for key, want := range map[string]int{"": 401, keys[2]: 200, made.Secret: 200} {
		got, err := c.do(http.MethodGet, n.url+"/v1/rates/best?currency=USD&operation=buy", key, nil)
		if err != nil || got.status != want {
			t.Errorf("status %d, want %d, %v: %s", got.status, want, err, got.body)
		}
		day, minute, ok := got.windows()
		if tighter, is := got.tighter(); want == 200 && (!ok || !is || day.limit != 1000 || minute.limit != 60 || tighter.remaining != minute.remaining) {
			t.Errorf("limits: %+v, %+v, %+v", day, minute, tighter)
		}
	}
	if got, err := n.admin().do(http.MethodGet, "http://node/accounts", "", nil); err != nil || !got.good() {
		t.Errorf("status %d, %v", got.status, err)
	}
	n.stop()
}
