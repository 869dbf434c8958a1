package conformance

// rules are all rules, in the order of the register; those that look at all answers come last.
func rules() []rule {
	accounts := func(o *Options) bool { return o.Code != nil }
	exhaust := func(o *Options) bool { return o.Exhaust }
	return []rule{
		{id: "S1", description: "who buys pays sell, who sells gets buy", check: checkSides},
		{id: "S2", description: "the best for the caller comes first", check: checkOrder},
		{id: "S3", description: "ties go by priority, newest collectedAt, institution, channel, id", check: checkTies},
		{id: "S4", description: "best has the current commercial rates that have the side, and no others", check: checkPopulation},
		{id: "S5", description: "best of reference rates is empty", check: checkBestReference},
		{id: "S6", description: "convert has the population of best; reference rates when asked for", check: checkConvertPopulation},
		{id: "S8", description: "amountDop is the exact product, rounded half up once", check: checkAmounts},
		{id: "S9", description: "foreignAmount and rate are repeated as they were written", check: checkVerbatim},
		{id: "S10", description: "feesIncluded is false, feeNotice a sentence", check: checkFees},

		{id: "P1", description: "a walk is the list, whatever the limit; beyond the end is empty", check: checkWalks},
		{id: "P2", description: "total counts the matches", check: checkTotals},
		{id: "P4", description: "lists have their order", check: checkListOrders},
		{id: "P5", description: "generatedAt is in whole seconds of UTC", check: checkGeneratedAt},
		{id: "P6", description: "counts are of published and of current rates", check: checkCounts},
		{id: "P7", description: "every rate is of a listed institution", check: checkListedInstitutions},
		{id: "P8", description: "institutions of a currency publish it", check: checkInstitutionsOfCurrency},
		{id: "P9", description: "a value that nothing matches gives an empty list", check: checkNothingMatches},
		{id: "P10", description: "the id of a rate is institution:currency:channel:kind", check: checkIDs},

		{id: "T1", description: "stale means now is at or after expiresAt", check: checkStale},
		{id: "T4", description: "collectedAt is not after lastCheckedAt", check: checkTimestamps},
		{id: "T5", description: "history has one row for each day and quote", check: checkRows},
		{id: "T6", description: "a range without its ends is completed", check: checkRanges},
		{id: "T7", description: "from after to is 400", check: badParameters("from", "/v1/rates/history?from=2026-02-02&to=2026-02-01")},
		{id: "T8", description: "more than 365 days are 400", check: checkLongRange},
		{id: "T9", description: "days ahead have no rows", check: checkFuture},
		{id: "T10", description: "dates exist, and are written one way", check: checkDates},

		{id: "Q1", description: "an unknown parameter is 400 and names the nearest", check: checkUnknownParameter},
		{id: "Q2", description: "a repeated parameter is 400", check: checkRepeated},
		{id: "Q3", description: "values are byte-exact; all problems come together", check: checkValues},
		{id: "Q4", description: "a key in the URL is refused", check: checkKeyInURL},
		{id: "Q5", description: "HEAD is GET without its body, OPTIONS is 204", check: checkHeadAndOptions},
		{id: "Q6", description: "another method is 405 with Allow", check: checkMethods},
		{id: "Q7", description: "an unknown path is 404", check: notFoundPaths("/v1", "/v1/", "/v1/nothing", "/v2/rates", "/v1/rates/worst", "/v1/institutions/a/b")},
		{id: "Q8", description: "paths match exactly", check: notFoundPaths("/v1/rates/", "/V1/rates", "/v1//rates", "/v1/Rates", "/v1/currencies/", "/v1/institutions/",
			"/v1/rates/../rates")},
		{id: "Q9", description: "an id that is none is 404, one that can't be read 400", check: checkPathIDs},
		{id: "Q11", description: "answers of 1 KiB and more are compressed when accepted", check: checkGzip},
		{id: "Q12", description: "the ETag leaves generatedAt out and gives 304", check: checkETags},
		{id: "Q13", description: "max-age is at most 60 and ends with the next expiry", check: checkMaxAge},
		{id: "Q15", description: "browsers may not send Authorization", check: checkPreflight},

		{id: "L2", description: "a minute has its limit, and a 429 says how long to wait", check: checkExhaust, needs: exhaust},
		{id: "L3", description: "X-RateLimit is the tighter of the two windows", check: checkWindows},
		{id: "L6", description: "200, 304, 400 and the institution's 404 cost one; other errors nothing", check: checkCosts},
		{id: "L7", description: "route, method, then parameters", check: checkErrorPrecedence},

		{id: "K1", description: "the way from an address to a key", check: checkAccountFlow, needs: accounts},
		{id: "K2", description: "wrong codes are answered alike, a code works once", check: checkCodes, needs: accounts},
		{id: "K3", description: "a second code within a minute is 429", check: checkSecondCode, needs: accounts},
		{id: "K5", description: "two active keys; a revoked one is none", check: checkTwoKeys, needs: accounts},
		{id: "K9", description: "there are no events", check: notFoundPaths("/v1/events", "/v1/webhooks", "/v1/notifications", "/v1/rates/stream")},

		{id: "Q10", description: "answers are JSON of UTF-8, nosniff", check: checkContentTypes, afterOthers: true},
		{id: "Q14", description: "CORS * on data answers, none on accounts", check: checkCORS, afterOthers: true},
		{id: "Q16", description: "every answer has its request id", check: checkRequestIDs, afterOthers: true},
		{id: "E1", description: "error.code is of the closed list and of its status", check: checkErrorCodes, afterOthers: true},
		{id: "E2", description: "details come with 400 only", check: checkDetails, afterOthers: true},
		{id: "L5", description: "429 and 503 say when to come again", check: checkRetryAfter, afterOthers: true},
		{id: "L9", description: "the limit headers are on every data answer with an identity, or on none", check: checkLimitHeaders, afterOthers: true},
		{id: "K8", description: "bodies have the fields of the contract and no others", check: checkSchemas, afterOthers: true},
	}
}
