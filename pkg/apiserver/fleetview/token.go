// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

const (
	// maxToken bounds what a caller gives as a token, and what comes of a member's.
	maxToken = 16 << 10
	// tokenVersion is of how a token is written.
	tokenVersion = 1
)

// token is where a list goes on: at a member, with what that member gave to go on with.
// Members before it have been read to their end. It holds nothing that its holder may not
// know, and gives no right: whoever changes one begins elsewhere in what they may read.
type token struct {
	Version int `json:"v"`
	// Of is which list it is of.
	Of []byte `json:"of"`
	// Member is where to go on, Continue the member's own token; empty at its beginning.
	Member   string `json:"m"`
	Continue string `json:"c,omitempty"`
	// Shape is that of the pages before.
	Shape splice.Shape `json:"s"`
	// Read is up to where members were read, for who watches then; left out if it is too
	// large.
	Read string `json:"r,omitempty"`
}

// listKey tells one list from another: what members are asked, and through which view.
func (x *exchange) listKey() []byte {
	query := url.Values{}
	for key, values := range x.query {
		if !slices.Contains(notPassed, key) {
			query[key] = values
		}
	}
	sum := sha256.Sum256([]byte(x.request.view + "\n" + x.url.Path + "\n" + query.Encode()))
	return sum[:12]
}

func (t token) encode() (string, error) {
	t.Version = tokenVersion
	text, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	if len(text) > maxToken && t.Read != "" {
		t.Read = ""
		return t.encode()
	}
	if len(text) > maxToken {
		return "", errors.New("a member's token is too large to go on with")
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// tokenOf reads the token that a request goes on with; nil if it begins.
func (x *exchange) tokenOf() (*token, error) {
	text := x.query.Get("continue")
	if text == "" {
		return nil, nil
	}
	if version := x.query.Get("resourceVersion"); version != "" && version != "0" {
		return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	if len(text) > base64.RawURLEncoding.EncodedLen(maxToken) {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is larger than any that a view of the fleet gives")
	}
	content, err := base64.RawURLEncoding.DecodeString(text)
	var t token
	if err != nil || json.Unmarshal(content, &t) != nil || t.Version != tokenVersion || t.Shape.Kind == "" {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is none that a view of the fleet gave")
	}
	if !slices.Equal(t.Of, x.listKey()) {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is of another list, of other selectors or of another view")
	}
	return &t, nil
}

// errExpired is of a token that leads nowhere any more.
func errExpired(member, why string) error {
	return apierrors.NewResourceExpired("the list cannot go on at member \"" + member + "\", which " + why + ": begin it again")
}
