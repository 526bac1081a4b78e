package compat

import "hydrallm/shared/openai/rawjson"

// omitted is what stands for an image that no available model can see.
const omitted = `{"type":"text","text":"[image omitted: no available model accepts images]"}`

// WithoutImages replaces the images in the messages of a request by a text that says so, and counts them (C-25). An image is a part of type
// image_url, alone or in an array. The body is returned as it is when there is none.
func WithoutImages(body []byte) (out []byte, n int) {
	s := rawjson.Scan(body)
	if !s.Enter('{') {
		return body, 0
	}
	var e edits
	for s.Member() {
		if string(s.Key()) != "messages" {
			s.Skip()
			continue
		}
		for ok := s.Enter('['); ok && s.Element(); {
			for ok := s.Enter('{'); ok && s.Member(); {
				if string(s.Key()) == "content" {
					omitImages(&s, body, &e)
				} else {
					s.Skip()
				}
			}
		}
	}
	if !s.End() {
		return body, 0
	}
	return e.apply(body), len(e)
}

// omitImages reads a content and replaces its images.
func omitImages(s *rawjson.Scanner, body []byte, e *edits) {
	if s.Kind() == '{' {
		omitImage(s, body, e)
		return
	}
	if !s.Enter('[') {
		return
	}
	for s.Element() {
		omitImage(s, body, e)
	}
}

func omitImage(s *rawjson.Scanner, body []byte, e *edits) {
	start := s.Pos()
	if !s.Enter('{') {
		return
	}
	image := false
	for s.Member() {
		isType := string(s.Key()) == "type"
		if value := s.Skip(); isType {
			image = rawjson.Is(value.Of(body), "image_url")
		}
	}
	if image {
		e.replace(start, s.Pos(), omitted)
	}
}
