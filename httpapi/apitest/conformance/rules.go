package conformance

// rules returns all rules in the order of docs/decisions.md, except that rules about all recorded responses
// (afterOthers) come last.
func rules() []rule {
	accounts := func(o *Options) bool { return o.Code != nil }
	exhaust := func(o *Options) bool { return o.Exhaust }
	return []rule{
		{id: "S1", description: "a caller that buys pays sell, a caller that sells gets buy", check: checkSides},
		{id: "S2", description: "the best for the caller comes first", check: checkOrder},
		{id: "S3", description: "equal sides are ordered by priority, newest collectedAt, institution, channel, id", check: checkTies},
		{id: "S4", description: "best contains all current commercial rates that have the side, and no others", check: checkPopulation},
		{id: "S5", description: "best of reference rates is empty", check: checkBestReference},
		{id: "S6", description: "convert contains the same rates as best, or reference rates when asked for them", check: checkConvertPopulation},
		{id: "S8", description: "amountDop is the exact product, rounded half up once", check: checkAmounts},
		{id: "S9", description: "foreignAmount and rate are repeated as written", check: checkVerbatim},
		{id: "S10", description: "feesIncluded is false, feeNotice is a sentence", check: checkFees},

		{id: "P1", description: "the pages of a list make up the list, whatever the limit; beyond its end they are empty", check: checkWalks},
		{id: "P2", description: "total counts all items of the list", check: checkTotals},
		{id: "P4", description: "lists are ordered", check: checkListOrders},
		{id: "P5", description: "generatedAt is in whole seconds of UTC", check: checkGeneratedAt},
		{id: "P6", description: "quoteCount counts published rates, currentQuoteCount current rates", check: checkCounts},
		{id: "P7", description: "every rate is of a listed institution", check: checkListedInstitutions},
		{id: "P8", description: "institutions listed for a currency publish it", check: checkInstitutionsOfCurrency},
		{id: "P9", description: "a value that matches nothing gives an empty list", check: checkNothingMatches},
		{id: "P10", description: "the id of a rate is institution:currency:channel:kind", check: checkIDs},

		{id: "T1", description: "stale means now is at or after expiresAt", check: checkStale},
		{id: "T4", description: "collectedAt is not after lastCheckedAt", check: checkTimestamps},
		{id: "T5", description: "history has one row for each day and quote", check: checkRows},
		{id: "T6", description: "a missing end of a range is filled in", check: checkRanges},
		{id: "T7", description: "from after to is 400", check: badParameters("from", "/v1/rates/history?from=2026-02-02&to=2026-02-01")},
		{id: "T8", description: "a range of more than 365 days is 400", check: checkLongRange},
		{id: "T9", description: "future days have no rows", check: checkFuture},
		{id: "T10", description: "dates must exist and have one form", check: checkDates},

		{id: "Q1", description: "an unknown parameter is 400 with the nearest known name", check: checkUnknownParameter},
		{id: "Q2", description: "a repeated parameter is 400", check: checkRepeated},
		{id: "Q3", description: "values match byte for byte; all problems are reported together", check: checkValues},
		{id: "Q4", description: "a key in the URL is 400", check: checkKeyInURL},
		{id: "Q5", description: "HEAD is GET without its body, OPTIONS is 204", check: checkHeadAndOptions},
		{id: "Q6", description: "another method is 405 with Allow", check: checkMethods},
		{id: "Q7", description: "an unknown path is 404", check: notFoundPaths("/v1", "/v1/", "/v1/nothing", "/v2/rates", "/v1/rates/worst", "/v1/institutions/a/b")},
		{id: "Q8", description: "paths match exactly", check: notFoundPaths("/v1/rates/", "/V1/rates", "/v1//rates", "/v1/Rates", "/v1/currencies/", "/v1/institutions/",
			"/v1/rates/../rates")},
		{id: "Q9", description: "an unknown id is 404, an unreadable one 400", check: checkPathIDs},
		{id: "Q11", description: "responses of 1 KiB and more are compressed on request", check: checkGzip},
		{id: "Q12", description: "the ETag ignores generatedAt and gives 304", check: checkETags},
		{id: "Q13", description: "max-age is at most 60 and ends with the next expiry", check: checkMaxAge},
		{id: "Q15", description: "browsers may not send Authorization", check: checkPreflight},

		{id: "L2", description: "a minute has a limit, and a 429 has Retry-After", check: checkExhaust, enabled: exhaust},
		{id: "L3", description: "X-RateLimit describes the tighter of the two windows", check: checkWindows},
		{id: "L6", description: "200, 304, 400 and the 404 of an institution count as one request, other responses do not count", check: checkCosts},
		{id: "L7", description: "errors are checked in the order path, method, parameters", check: checkErrorPrecedence},

		{id: "K1", description: "an e-mail address leads to a key", check: checkAccountFlow, enabled: accounts},
		{id: "K2", description: "all wrong codes are answered alike, a code works once", check: checkCodes, enabled: accounts},
		{id: "K3", description: "a second code within a minute is 429", check: checkSecondCode, enabled: accounts},
		{id: "K5", description: "an account has two active keys; a revoked key is refused", check: checkTwoKeys, enabled: accounts},
		{id: "K9", description: "there are no events", check: notFoundPaths("/v1/events", "/v1/webhooks", "/v1/notifications", "/v1/rates/stream")},

		{id: "Q10", description: "responses are JSON in UTF-8 with nosniff", check: eachResponse(checkContentType), afterOthers: true},
		{id: "Q14", description: "CORS allows all origins for data, none for accounts", check: eachResponse(checkCORS), afterOthers: true},
		{id: "Q16", description: "every response has a request id of its own", check: checkRequestIDs, afterOthers: true},
		{id: "E1", description: "error.code is in the closed list and belongs to its status", check: eachResponse(checkErrorCode), afterOthers: true},
		{id: "E2", description: "only 400 has details", check: eachResponse(checkDetails), afterOthers: true},
		{id: "L5", description: "429 and 503 have Retry-After", check: eachResponse(checkRetryAfter), afterOthers: true},
		{id: "L9", description: "all counted responses have the limit headers, or none has", check: checkLimitHeaders, afterOthers: true},
		{id: "K8", description: "bodies have the fields of the API specification and no others", check: checkSchemas, afterOthers: true},
	}
}
