package conformance

// rules are all rules, in the order of the register; those that look at all answers come last.
func rules() []rule {
	accounts := func(o *Options) bool { return o.Code != nil }
	exhaust := func(o *Options) bool { return o.Exhaust }
	return []rule{
		{id: "S1", says: "who buys pays sell, who sells gets buy", check: checkSides},
		{id: "S2", says: "the best for the caller comes first", check: checkOrder},
		{id: "S3", says: "ties go by priority, newest collectedAt, institution, channel, id", check: checkTies},
		{id: "S4", says: "best has the current commercial rates that have the side, and no others", check: checkPopulation},
		{id: "S5", says: "best of reference rates is empty", check: checkBestReference},
		{id: "S6", says: "convert has the population of best; reference rates when asked for", check: checkConvertPopulation},
		{id: "S8", says: "amountDop is the exact product, rounded half up once", check: checkAmounts},
		{id: "S9", says: "foreignAmount and rate are repeated as they were written", check: checkVerbatim},
		{id: "S10", says: "feesIncluded is false, feeNotice a sentence", check: checkFees},

		{id: "P1", says: "a walk is the list, whatever the limit; beyond the end is empty", check: checkWalks},
		{id: "P2", says: "total counts the matches", check: checkTotals},
		{id: "P4", says: "lists have their order", check: checkListOrders},
		{id: "P5", says: "generatedAt is in whole seconds of UTC", check: checkGeneratedAt},
		{id: "P6", says: "counts are of published and of current rates", check: checkCounts},
		{id: "P7", says: "every rate is of a listed institution", check: checkListedInstitutions},
		{id: "P8", says: "institutions of a currency publish it", check: checkInstitutionsOfCurrency},
		{id: "P9", says: "a value that nothing matches gives an empty list", check: checkNothingMatches},
		{id: "P10", says: "the id of a rate is institution:currency:channel:kind", check: checkIDs},

		{id: "T1", says: "stale means now is at or after expiresAt", check: checkStale},
		{id: "T4", says: "collectedAt is not after lastCheckedAt", check: checkMoments},
		{id: "T5", says: "history has one row for each day and quote", check: checkRows},
		{id: "T6", says: "a range without its ends is completed", check: checkRanges},
		{id: "T7", says: "from after to is 400", check: bad("from", "/v1/rates/history?from=2026-02-02&to=2026-02-01")},
		{id: "T8", says: "more than 365 days are 400", check: checkLongRange},
		{id: "T9", says: "days ahead have no rows", check: checkFuture},
		{id: "T10", says: "dates exist, and are written one way", check: checkDates},

		{id: "Q1", says: "an unknown parameter is 400 and names the nearest", check: checkUnknownParameter},
		{id: "Q2", says: "a repeated parameter is 400", check: checkRepeated},
		{id: "Q3", says: "values are byte-exact; all problems come together", check: checkValues},
		{id: "Q4", says: "a key in the URL is refused", check: checkKeyInURL},
		{id: "Q5", says: "HEAD is GET without its body, OPTIONS is 204", check: checkHeadAndOptions},
		{id: "Q6", says: "another method is 405 with Allow", check: checkMethods},
		{id: "Q7", says: "an unknown path is 404", check: unknown("/v1", "/v1/", "/v1/nothing", "/v2/rates", "/v1/rates/worst", "/v1/institutions/a/b")},
		{id: "Q8", says: "paths match exactly", check: unknown("/v1/rates/", "/V1/rates", "/v1//rates", "/v1/Rates", "/v1/currencies/", "/v1/institutions/",
			"/v1/rates/../rates")},
		{id: "Q9", says: "an id that is none is 404, one that can't be read 400", check: checkPathIDs},
		{id: "Q11", says: "answers of 1 KiB and more are compressed when accepted", check: checkGzip},
		{id: "Q12", says: "the ETag leaves generatedAt out and gives 304", check: checkETags},
		{id: "Q13", says: "max-age is at most 60 and ends with the next expiry", check: checkMaxAge},
		{id: "Q15", says: "browsers may not send Authorization", check: checkPreflight},

		{id: "L2", says: "a minute has its limit, and a 429 says how long to wait", check: checkExhaust, needs: exhaust},
		{id: "L3", says: "X-RateLimit is the tighter of the two windows", check: checkWindows},
		{id: "L6", says: "200, 304, 400 and the institution's 404 cost one; other errors nothing", check: checkCharges},
		{id: "L7", says: "route, method, then parameters", check: checkTurns},

		{id: "K1", says: "the way from an address to a key", check: checkAccountFlow, needs: accounts},
		{id: "K2", says: "wrong codes are answered alike, a code works once", check: checkCodes, needs: accounts},
		{id: "K3", says: "a second code within a minute is 429", check: checkSecondCode, needs: accounts},
		{id: "K5", says: "two active keys; a revoked one is none", check: checkTwoKeys, needs: accounts},
		{id: "K9", says: "there are no events", check: unknown("/v1/events", "/v1/webhooks", "/v1/notifications", "/v1/rates/stream")},

		{id: "Q10", says: "answers are JSON of UTF-8, nosniff", check: checkContentTypes, seen: true},
		{id: "Q14", says: "CORS * on data answers, none on accounts", check: checkCORS, seen: true},
		{id: "Q16", says: "every answer has its request id", check: checkRequestIDs, seen: true},
		{id: "E1", says: "error.code is of the closed list and of its status", check: checkErrorCodes, seen: true},
		{id: "E2", says: "details come with 400 only", check: checkDetails, seen: true},
		{id: "L5", says: "429 and 503 say when to come again", check: checkRetryAfter, seen: true},
		{id: "L9", says: "the limit headers are on every data answer with an identity, or on none", check: checkLimitHeaders, seen: true},
		{id: "K8", says: "bodies have the fields of the contract and no others", check: checkShapes, seen: true},
	}
}
