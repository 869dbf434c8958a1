package fields

import "bytes"

// qualityMax is a quality of 1, in thousandths.
const qualityMax = 1000

// AcceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3): gzip by its name or by "*", with a quality above 0
// and not below that of identity where that is named. Without the header the answer is not compressed.
func AcceptsGzip(lines [][]byte) bool {
	gzip, star, identity := -1, -1, -1
	for _, line := range lines {
		for len(line) > 0 {
			item := line
			if comma := bytes.IndexByte(line, ','); comma >= 0 {
				item, line = line[:comma], line[comma+1:]
			} else {
				line = nil
			}
			coding, quality := codingQuality(item)
			switch {
			case EqualFold(coding, "gzip"), EqualFold(coding, "x-gzip"):
				gzip = max(gzip, quality)
			case string(coding) == "*":
				star = quality
			case EqualFold(coding, "identity"):
				identity = quality
			}
		}
	}
	if gzip < 0 {
		gzip = star
	}
	return gzip > 0 && gzip >= identity
}

// codingQuality splits "gzip;q=0.5". A quality that cannot be read is 0: better not compressed than not understood.
func codingQuality(item []byte) (coding []byte, quality int) {
	semicolon := bytes.IndexByte(item, ';')
	if semicolon < 0 {
		return TrimBlanks(item), qualityMax
	}
	weight := TrimBlanks(item[semicolon+1:])
	if len(weight) < 2 || weight[0]|0x20 != 'q' || weight[1] != '=' {
		return TrimBlanks(item[:semicolon]), 0
	}
	return TrimBlanks(item[:semicolon]), thousandths(weight[2:])
}

// thousandths reads a quality: 0 or 1, with at most three decimals, and at most 1. Anything else is 0.
func thousandths(text []byte) int {
	const lengthMax = len("0.000")
	if len(text) == 0 || len(text) > lengthMax || text[0] != '0' && text[0] != '1' || len(text) > 1 && text[1] != '.' {
		return 0
	}
	quality := int(text[0]-'0') * qualityMax
	for place, c := 100, text[min(2, len(text)):]; len(c) > 0; place, c = place/10, c[1:] {
		if c[0] < '0' || c[0] > '9' {
			return 0
		}
		quality += int(c[0]-'0') * place
	}
	if quality > qualityMax {
		return 0
	}
	return quality
}
