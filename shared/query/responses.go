package query

import "time"

// Operations on stored responses. One that does not exist, or belongs to another principal, is a fault of kind fault.NotFound.
var (
	// GetResponse gives a response as its client got it; GET /v1/responses/{id}.
	GetResponse = Op[ResponseID, Document]{SessionWriter, "response", 20 * time.Second}
	// DeleteResponse removes one; DELETE /v1/responses/{id}.
	DeleteResponse = Op[ResponseID, ResponseDeleted]{SessionWriter, "delete_response", 20 * time.Second}
	// ListInputItems gives a part of the items of its request; GET /v1/responses/{id}/input_items.
	ListInputItems = Op[InputItems, ItemPage]{SessionWriter, "input_items", 20 * time.Second}
)

// ResponseID names a stored response, and who asks for it.
type ResponseID struct {
	ID        string `json:"id"`
	Principal string `json:"principal"`
}

// ResponseDeleted says that a response was removed.
type ResponseDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // "response"
	Deleted bool   `json:"deleted"`
}

// InputItems asks for items behind one of them.
type InputItems struct {
	ResponseID

	After     string `json:"after,omitempty"` // id of an item; "" = from the begin
	Limit     int    `json:"limit"`           // 1 to 100
	Ascending bool   `json:"ascending,omitempty"`
}

// ItemPage is a part of the items of a request.
type ItemPage struct {
	Object  string     `json:"object"` // "list"
	Data    []Document `json:"data"`
	FirstID *string    `json:"first_id"` // nil when there are no items
	LastID  *string    `json:"last_id"`
	More    bool       `json:"has_more"`
}
