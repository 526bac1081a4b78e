package mockllm

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// mediaRequest is what the mock reads of a request that is no conversation, as JSON or as a form.
type mediaRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	Query          string          `json:"query"`
	Documents      []any           `json:"documents"`
	N              *int            `json:"n"`
	ResponseFormat string          `json:"response_format"`
	Stream         bool            `json:"stream"`

	file string // name and size of the file of a form
}

// media answers such a request.
func (s *Server) media(answer func(w http.ResponseWriter, req *mediaRequest)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req mediaRequest
		var fault *failure
		if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
			fault = req.readForm(w, r)
		} else {
			_, fault = read(w, r, &req)
		}
		switch {
		case fault != nil:
		case req.Model == Unavailable:
			fault = failureOf(http.StatusServiceUnavailable)
		case req.Model != Model:
			fault = failureOf(http.StatusNotFound)
		case req.choices() < 1 || req.choices() > maxChoices:
			fault = invalid("n", "n must be from 1 to "+strconv.Itoa(maxChoices))
		}
		if fault != nil {
			fault.send(w)
			return
		}
		answer(w, &req)
	}
}

func (req *mediaRequest) readForm(w http.ResponseWriter, r *http.Request) *failure {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	parts, err := r.MultipartReader()
	if err != nil {
		return invalid("", "We could not parse the form of your request.")
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(part)
		}
		if err != nil {
			return invalid("", "We could not parse the form of your request.")
		}
		switch name := part.FormName(); {
		case part.FileName() != "":
			req.file = part.FileName() + " of " + strconv.Itoa(len(content)) + " bytes"
		case name == "model":
			req.Model = string(content)
		case name == "response_format":
			req.ResponseFormat = string(content)
		case name == "stream":
			req.Stream = string(content) == "true"
		case name == "n":
			n, _ := strconv.Atoi(string(content))
			req.N = &n
		}
	}
	if req.file == "" {
		return invalid("file", "The form has no file.")
	}
	return nil
}

func (req *mediaRequest) choices() int {
	if req.N == nil {
		return 1
	}
	return *req.N
}

// flaggedBy is what a moderation finds wrong.
const flaggedBy = "violence"

// moderate flags texts in which the word for it is.
func moderate(w http.ResponseWriter, req *mediaRequest) {
	type result struct {
		Flagged    bool                `json:"flagged"`
		Categories map[string]bool     `json:"categories"`
		Scores     map[string]float64  `json:"category_scores"`
		Types      map[string][]string `json:"category_applied_input_types"`
	}
	inputs := []json.RawMessage{req.Input}
	var texts []string
	if json.Unmarshal(req.Input, &texts) == nil { // others, such as parts of a message, are one
		inputs = inputs[:0]
		for _, text := range texts {
			inputs = append(inputs, encode(text))
		}
	}
	var results []result
	for _, input := range inputs {
		flagged := strings.Contains(string(input), flaggedBy)
		score := 0.01
		if flagged {
			score = 0.99
		}
		results = append(results, result{
			flagged, map[string]bool{flaggedBy: flagged}, map[string]float64{flaggedBy: score}, map[string][]string{flaggedBy: {"text"}},
		})
	}
	send(w, http.StatusOK, encode(map[string]any{"id": "modr-mock", "model": Model, "results": results}))
}

// speak answers with a tenth of a second of silence, as a WAV file whatever the format is.
func speak(w http.ResponseWriter, req *mediaRequest) {
	kind := "audio/mpeg"
	if req.ResponseFormat != "" && req.ResponseFormat != "mp3" {
		kind = "audio/" + req.ResponseFormat
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(silence()) // the client may have left
}

func silence() []byte {
	const rate, samples = 8000, 800 // of 8 bits
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), 36+samples)
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	for _, n := range []uint16{1, 1} { // PCM, one channel
		b = le.AppendUint16(b, n)
	}
	b = le.AppendUint32(le.AppendUint32(b, rate), rate)
	b = le.AppendUint16(le.AppendUint16(b, 1), 8)
	b = le.AppendUint32(append(b, "data"...), samples)
	return append(b, slices.Repeat([]byte{128}, samples)...)
}

// transcribe says what file it heard.
func transcribe(w http.ResponseWriter, req *mediaRequest) {
	heard := "The file is " + req.file + "."
	tokens := map[string]any{"type": "tokens", "input_tokens": 2, "output_tokens": 5, "total_tokens": 7}
	switch {
	case req.Stream:
		w.Header().Set("Content-Type", "text/event-stream")
		out := events{w: w, flush: http.NewResponseController(w)}
		for word := range words(heard) {
			out.data(encode(map[string]string{"type": "transcript.text.delta", "delta": word}))
		}
		out.data(encode(map[string]any{"type": "transcript.text.done", "text": heard, "usage": tokens}))
	case req.ResponseFormat == "text", req.ResponseFormat == "srt", req.ResponseFormat == "vtt":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, heard+"\n") // the client may have left
	default:
		send(w, http.StatusOK, encode(map[string]any{"text": heard, "usage": tokens}))
	}
}

// pixel is a PNG of one transparent pixel.
var pixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")

// draw answers with small pictures.
func draw(w http.ResponseWriter, req *mediaRequest) {
	type picture struct {
		Base64 []byte `json:"b64_json"`
	}
	send(w, http.StatusOK, encode(map[string]any{
		"created": created, "data": slices.Repeat([]picture{{pixel}}, req.choices()), "output_format": "png",
		"usage": map[string]int{"input_tokens": 3, "output_tokens": 4 * req.choices(), "total_tokens": 3 + 4*req.choices()},
	}))
}

// rank orders documents by how many of their words are in the query.
func rank(w http.ResponseWriter, req *mediaRequest) {
	type result struct {
		Index     int     `json:"index"`
		Relevance float64 `json:"relevance_score"`
	}
	query := strings.Fields(strings.ToLower(req.Query))
	results, tokens := make([]result, 0, len(req.Documents)), len(query)
	for i, d := range req.Documents {
		text, _ := d.(string)
		if m, ok := d.(map[string]any); ok {
			text, _ = m["text"].(string)
		}
		words := strings.Fields(strings.ToLower(text))
		hits := 0
		for _, word := range words {
			if slices.Contains(query, word) {
				hits++
			}
		}
		tokens += len(words)
		results = append(results, result{i, float64(hits) / float64(max(len(words), 1))})
	}
	slices.SortStableFunc(results, func(a, b result) int {
		switch {
		case a.Relevance > b.Relevance:
			return -1
		case a.Relevance < b.Relevance:
			return 1
		}
		return 0
	})
	send(w, http.StatusOK, encode(map[string]any{"model": Model, "results": results, "usage": map[string]int{"total_tokens": tokens}}))
}
