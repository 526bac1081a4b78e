package extract

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dateMetas are the marks of the date of publication, in the order of their weight.
var dateMetas = []string{
	"article:published_time", "pubdate", "publish-date", "publishdate", "og:published_time", "datepublished", "og:article:published_time",
	"publication_date", "article.published", "date", "dc.date", "dc.date.issued", "dcterms.created", "sailthru.date", "parsely-pub-date",
}

// published finds the day on which a page was published, zero = none was found. What the page declares counts before the first date in its text.
func published(s *scanned, text string) time.Time {
	for _, name := range dateMetas {
		if day := dateIn(s.metas[name]); !day.IsZero() {
			return day
		}
	}
	for _, doc := range s.jsonLD {
		if day := dateIn(inJSON(doc, "datePublished")); !day.IsZero() {
			return day
		}
	}
	for _, value := range s.times {
		if day := dateIn(value); !day.IsZero() {
			return day
		}
	}
	return dateIn(text)
}

// inJSON gives the first string of the name anywhere in a document; of one that is broken, what stands there as text.
func inJSON(doc, name string) string {
	var v any
	if err := json.Unmarshal([]byte(strings.TrimSpace(doc)), &v); err == nil {
		return find(v, name, 0)
	}
	if m := regexp.MustCompile(`"` + name + `"\s*:\s*"([^"]{4,40})"`).FindStringSubmatch(doc); m != nil {
		return m[1]
	}
	return ""
}

func find(v any, name string, depth int) string {
	if depth > 16 {
		return ""
	}
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v[name].(string); ok {
			return s
		}
		// The order of a map is none: what the page is about is preferred to what it links to.
		for _, key := range []string{"@graph", "mainEntity", "mainEntityOfPage", "itemListElement"} {
			if s := find(v[key], name, depth+1); s != "" {
				return s
			}
		}
	case []any:
		for _, one := range v {
			if s := find(one, name, depth+1); s != "" {
				return s
			}
		}
	}
	return ""
}

const months = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

// datePattern has three forms: year first in digits or Korean, Chinese and Japanese; month in words, then day; day, then month in words.
var datePattern = regexp.MustCompile(`(?i)` +
	`(?:^|[^\d./-])((?:19|20)\d\d)(?:\s*[년年]\s*|\s?[-./]\s?)(0?[1-9]|1[0-2])(?:\s*[월月]\s*|\s?[-./]\s?)(3[01]|[12]\d|0?[1-9])(?:[일日T\s.,;:)\]~]|$|[^\d./-])` +
	`|\b(` + months + `)\.?\s+(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?,?\s+((?:19|20)\d\d)\b` +
	`|\b(3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?[\s-]+(` + months + `)\.?,?[\s-]+((?:19|20)\d\d)\b` +
	`|^\s*((?:19|20)\d\d)(0[1-9]|1[0-2])(3[01]|[12]\d|0[1-9])(?:T?\d{4,6})?\s*$`)

// dateWindow is how much of a text is searched for a date, in bytes.
const dateWindow = 64 << 10

// dateIn gives the first plausible day in text.
func dateIn(text string) time.Time {
	text = text[:min(len(text), dateWindow)]
	for text != "" {
		m := datePattern.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		for _, g := range [][3]int{{1, 2, 3}, {6, 4, 5}, {9, 8, 7}, {10, 11, 12}} {
			if day, ok := plausible(group(g[0]), group(g[1]), group(g[2])); ok {
				return day
			}
		}
		text = text[max(m[1]-1, m[0]+1):]
	}
	return time.Time{}
}

// plausible makes a day of its parts: one that exists, since there are web pages, and not in the future. A day is left for zones in which it is tomorrow.
func plausible(year, month, day string) (time.Time, bool) {
	y, _ := strconv.Atoi(year)
	m, err := strconv.Atoi(month)
	if err != nil && len(month) >= 3 {
		m = strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(month[:3]))/3 + 1
	}
	d, _ := strconv.Atoi(day)
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	return t, y >= 1990 && d > 0 && t.Day() == d && int(t.Month()) == m && t.Before(time.Now().Add(24*time.Hour))
}
