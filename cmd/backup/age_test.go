package backup

import (
	"testing"
	"time"
)

func TestAgeOf(t *testing.T) {
	for age, want := range map[time.Duration]string{
		30 * time.Second: "30s ago\n", 3 * time.Hour: "3h0m0s ago\n", 20 * 24 * time.Hour: "20 days ago\n",
		-time.Hour: "1h0m0s ahead of this machine's clock\n",
	} {
		if got := formatAge(age) + "\n"; got != want {
			t.Errorf("%s is printed as %q, want %q", age, got, want)
		}
	}
}
