// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

const (
	// maxToken limits the size of a caller's token and of a member's token.
	maxToken = 16 << 10
	// tokenVersion is the version of the token's format.
	tokenVersion = 1
)

// token says where a list continues: at a member, with that member's own token. All earlier members
// have been read to their end. It contains nothing secret and grants nothing: a caller that changes
// it only continues elsewhere in what it may read.
type token struct {
	Version int `json:"v"`
	// Of identifies the list.
	Of []byte `json:"of"`
	// Member is where to continue, Continue the member's own token; empty at its beginning.
	Member   string `json:"m"`
	Continue string `json:"c,omitempty"`
	// Shape is that of the previous pages.
	Shape splice.Shape `json:"s"`
	// Read is the version at which each member was read, for a later watch; left out if it is too
	// large.
	Read string `json:"r,omitempty"`
}

// listKey identifies a list: the request to members, and the view.
func (x *exchange) listKey() []byte {
	sum := sha256.Sum256([]byte(x.request.view + "\n" + x.url.Path + "\n" + withoutVersions(x.query).Encode()))
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
		return "", errors.New("a member's continue token is too large")
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// tokenOf reads the token from which a request continues; nil if it starts a list.
func (x *exchange) tokenOf() (*token, error) {
	text := x.query.Get("continue")
	if text == "" {
		return nil, nil
	}
	if version := x.query.Get("resourceVersion"); version != "" && version != "0" {
		return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	if len(text) > base64.RawURLEncoding.EncodedLen(maxToken) {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is larger than any token of a view of the fleet")
	}
	content, err := base64.RawURLEncoding.DecodeString(text)
	var t token
	if err != nil || json.Unmarshal(content, &t) != nil || t.Version != tokenVersion || t.Shape.Kind == "" {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is no token of a view of the fleet")
	}
	if !slices.Equal(t.Of, x.listKey()) {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is of another list, of other selectors or of another view")
	}
	return &t, nil
}

// errExpired is the error for a token that cannot be continued any more.
func errExpired(member, reason string) error {
	return apierrors.NewResourceExpired("the list cannot continue at member \"" + member + "\", which " + reason + ": list again")
}
