package node

import (
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
)

// DescribeRun returns a report of a collector in the form of the management API.
func DescribeRun(report *collectors.Report) admin.SourceRun {
	run := admin.SourceRun{
		Source: report.SourceID, DurationMillis: report.Duration.Milliseconds(), HistoryDays: report.HistoryDays, Failure: describeFailure(report.Failure),
		Pages: []admin.SourcePage{}, Rates: []admin.SourceRate{},
	}
	for i := range report.Pages {
		page := &report.Pages[i]
		run.Pages = append(run.Pages, admin.SourcePage{Name: page.Name, Digest: page.Digest, Notes: page.Notes, Failure: describeFailure(page.Failure)})
	}
	for i := range report.Observations {
		o, refusal := &report.Observations[i], &report.Refusals[i]
		rate := admin.SourceRate{
			InstitutionID: o.InstitutionID, Currency: o.Currency, Channel: o.Key().Channel, Kind: o.Key().Kind, Buy: o.Buy, Sell: o.Sell,
			Reason: refusal.Reason, Detail: refusal.Detail, EffectiveDate: o.EffectiveDate.String(),
		}
		if refusal.QuarantineID != 0 {
			rate.Quarantined = admin.QuarantineNumber(o.Currency, refusal.QuarantineID)
		}
		run.Rates = append(run.Rates, rate)
	}
	return run
}

func describeFailure(f *source.Failure) *admin.SourceFailure {
	if f == nil {
		return nil
	}
	return &admin.SourceFailure{Kind: string(f.Kind), Page: f.Page, Detail: f.Detail}
}
