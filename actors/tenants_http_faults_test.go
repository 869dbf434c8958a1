//go:build faults

package actors

import (
	"testing"

	"github.com/tasard/tasard/engine"
)

// TestFaultsQ1_Histories is TestQ1_HistoriesOverHTTP with every history.
func TestFaultsQ1_Histories(t *testing.T) {
	checkHistories(t, histories, historiesCrashed, overHTTP)
	t.Run("control", TestQ1_Control_CheckThenActOverHTTP)
	t.Run("control of the journal", TestQ1_Control_LeaseThatIsNotDurableIsIllegal)
}

// TestFaultsQ1_ExactlyTheLimit is TestQ1_ExactlyTheLimitOverHTTP for small leases and large ones.
func TestFaultsQ1_ExactlyTheLimit(t *testing.T) {
	for _, lease := range []int{1, 3, 16, 100} {
		admitted, refused := spendOverHTTP(t, lease, engine.DayLimitDefault)
		t.Logf("FIGURE lease %d: 2,000 requests of 8 clients with both keys: %d admitted, %d refused", lease, admitted, refused)
		if admitted != 1000 || refused != 1000 {
			t.Errorf("lease %d: %d admitted, %d refused", lease, admitted, refused)
		}
	}
}

// TestFaultsQ1_Boards is TestQ1_PublishedRatesAreLinearizable over many histories.
func TestFaultsQ1_Boards(t *testing.T) {
	checkBoards(t, 200)
	t.Run("control", TestQ1_Control_OlderRateIsIllegal)
}

// TestFaultsS7_Revocations is TestS7_RevokedKeysStayOut over many crashes and restarts.
func TestFaultsS7_Revocations(t *testing.T) {
	checkRevocations(t, 400)
	t.Run("control", TestS7_Control_RevocationThatIsNotDurable)
	for range 20 {
		TestS7_ThirdKeyOverHTTP(t)
	}
}

// TestFaultsS2_OneRightAnswer is TestS2_OneRightAnswerWinsOverHTTP again and again.
func TestFaultsS2_OneRightAnswer(t *testing.T) {
	codes, refusals, kinds := 0, 0, 0
	for range 20 {
		r := raceForCodes(t, honestAccounts)
		r.report(t)
		codes, refusals, kinds = codes+r.codes, refusals+r.refusals, len(r.kinds)
	}
	t.Logf("FIGURE %d codes with %d right answers each: one session each; %d refusals of %d kinds are the same bytes", codes, codeRacers, refusals, kinds)
	t.Run("control", TestS2_Control_OverHTTP)
}
