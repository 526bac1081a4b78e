package extract

import (
	"regexp"
	"strings"
)

var (
	tiny    = regexp.MustCompile(`^(?:[01](?:\.\d+)?(?:px|pt)?|0*(?:\.[01]\d*)?(?:em|rem|%)?)$`)
	farAway = regexp.MustCompile(`^-\d{4,}`)
	clipped = regexp.MustCompile(`^(?:rect\([01](?:px)?[, ]|inset\((?:50|100)%|circle\(0)`)
	white   = regexp.MustCompile(`^(?:white|#fff(?:fff)?|rgba?\(255,255,255(?:,[\d.]+)?\))`)
	simple  = regexp.MustCompile(`^[.#][A-Za-z_][\w-]*$`)
	comment = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// concealed says whether an element is not shown to who looks at the page: what is written for machines alone may be meant to instruct them.
func concealed(attrs map[string]string) bool {
	if _, ok := attrs["hidden"]; ok && attrs["hidden"] != "until-found" {
		return true
	}
	return strings.EqualFold(attrs["aria-hidden"], "true") || attrs["style"] != "" && unseenStyle(attrs["style"])
}

// telling are the properties that can make an element invisible.
var telling = set(`display visibility opacity font-size left top right text-indent margin-left clip clip-path transform width height max-height
	max-width overflow color background background-color background-image`)

// unseenStyle says whether declarations of CSS make their element invisible: not displayed, too small, out of sight, or white on white.
func unseenStyle(style string) bool {
	var light, dark, small, cut bool
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		key, value, _ := strings.Cut(declaration, ":")
		if key = strings.TrimSpace(key); !telling[key] {
			continue
		}
		value = strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimSpace(value), "!important")), " ")
		switch key {
		case "display":
			if value == "none" {
				return true
			}
		case "visibility":
			if value == "hidden" || value == "collapse" {
				return true
			}
		case "opacity":
			if strings.Trim(value, "0.%") == "" && value != "" {
				return true
			}
		case "font-size":
			if value != "" && tiny.MatchString(value) {
				return true
			}
		case "left", "top", "right", "text-indent", "margin-left":
			if farAway.MatchString(value) {
				return true
			}
		case "clip", "clip-path":
			if clipped.MatchString(value) {
				return true
			}
		case "transform":
			if strings.HasPrefix(value, "scale(0)") {
				return true
			}
		case "width", "height", "max-height", "max-width":
			small = small || value == "0" || value == "0px" || value == "1px"
		case "overflow":
			cut = value == "hidden"
		case "color":
			if value == "transparent" {
				return true
			}
			light = white.MatchString(strings.ReplaceAll(value, " ", ""))
		case "background", "background-color", "background-image":
			dark = dark || !white.MatchString(strings.ReplaceAll(value, " ", ""))
		}
	}
	return light && !dark || small && cut
}

// hiddenBy gives the classes and ids that a style sheet does not show whatever the screen: rules within @media and the like do not count.
func hiddenBy(css string) []string {
	css = comment.ReplaceAllString(css, "")
	var found []string
	for css != "" && len(found) < 200 {
		open := strings.IndexByte(css, '{')
		if open < 0 {
			break
		}
		selectors := css[:open]
		if i := strings.LastIndexByte(selectors, ';'); i >= 0 { // @import and the like
			selectors = selectors[i+1:]
		}
		end := blockEnd(css[open:])
		if !strings.Contains(selectors, "@") && unseenStyle(css[open+1:open+end]) {
			for one := range strings.SplitSeq(selectors, ",") {
				if one = strings.TrimSpace(one); simple.MatchString(one) {
					found = append(found, one)
				}
			}
		}
		css = css[min(len(css), open+end+1):]
	}
	return found
}

// blockEnd gives where the block ends that css begins with.
func blockEnd(css string) int {
	depth := 0
	for i := range len(css) {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(css)
}
