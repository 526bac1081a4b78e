package embed

import "hydrallm/shared/openai"

// AnswerAs is Answer without a request: any number of vectors will do.
func AnswerAs(body []byte, wantBase64 bool, model string) (out []byte, usage openai.Usage, err error) {
	a, err := read(body)
	if err != nil {
		return nil, openai.Usage{}, err
	}
	return a.build(format{wantBase64}, model)
}
