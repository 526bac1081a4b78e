package contract_test

import (
	"fmt"
	"time"

	"hydrallm/shared/contract"
)

// The envelope travels in the headers of a message, beside the client's body.
func ExampleRequest() {
	sent := &contract.Request{
		ID: "r1", Slip: contract.Slip{contract.StageReceived, contract.StageEnriched}, Ingress: "ingress-1", Operation: contract.Chat,
		Surface: contract.SurfaceChat, Model: "auto", StartBy: time.UnixMilli(1700000000000),
	}
	sent.Decision = &contract.Decision{Provider: "groq", Model: "llama-3.3-70b", Reason: contract.ReasonTokenCount}
	got, err := contract.ParseRequest(sent.Header())
	fmt.Println(err)
	fmt.Println(got.Slip)
	fmt.Println(got.ID, got.Model, got.Decision.Provider, contract.ShowReason(got.Decision.Reason))
	// Output:
	// <nil>
	// [received enriched]
	// r1 auto groq TOKEN_OPTIMIZED
}

// An answer is a sequence of frames; those that are ready together are one message.
func ExampleFrames() {
	head := contract.Head{Status: 200, Header: [][2]string{{"Content-Type", "text/event-stream"}}}
	at := contract.Position{Stage: contract.StageEnriched, Delivery: 1}
	msg := contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameHead, Position: at, Seq: 0, Payload: head.AppendJSON(nil)})
	msg = contract.AppendFrame(msg, contract.Frame{Kind: contract.FrameData, Position: at, Seq: 1, Payload: []byte("data: [DONE]\n\n")})
	msg = contract.AppendFrame(msg, contract.Frame{
		Kind: contract.FrameEnd, Position: at, Seq: 2, Payload: contract.End{Outcome: contract.OutcomeSuccess}.AppendJSON(nil),
	})
	for frame, err := range contract.Frames(msg) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %c %q\n", frame.Seq, frame.Kind, frame.Payload)
	}
	// Output:
	// 0 h "{\"status\":200,\"header\":[[\"Content-Type\",\"text/event-stream\"]]}"
	// 1 d "data: [DONE]\n\n"
	// 2 e "{\"outcome\":\"success\"}"
}
