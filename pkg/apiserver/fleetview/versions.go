// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// versionPrefix begins the version of a fleet. It starts with a letter because some clients
	// parse versions as numbers, and would compare what cannot be compared.
	versionPrefix = "v1."
	// maxVersion limits the size of a version that a caller gets and sends; one of 1,000 members has
	// about 8 KiB.
	maxVersion = 64 << 10
	// namesHash is the number of bytes that identify the members of a version.
	namesHash = 8
	// midList stands for the version of a member whose list was partly sent. A watch cannot resume
	// there, because deletions before the next list would not be reported.
	midList uint64 = math.MaxInt64
)

// versions are the versions at which each member of a list or a watch was read. Missing members
// were not read.
type versions map[string]uint64

// set records a member's own version. A server whose versions are not numbers cannot be resumed
// from.
func (v versions) set(member, version string) {
	if number, err := strconv.ParseUint(version, 10, 63); err == nil && number > 0 {
		v[member] = number
	}
}

// of is the version from which a member can be watched; empty if it has to be listed first.
func (v versions) of(member string) string {
	if number, ok := v[member]; ok && number != midList {
		return strconv.FormatUint(number, 10)
	}
	return ""
}

// complete is an error if no watch can resume from there.
func (v versions) complete() error {
	for member, number := range v {
		if number == midList {
			return apierrors.NewResourceExpired(fmt.Sprintf("only a part of the list of member %q was sent at this version: list again", member))
		}
	}
	return nil
}

func hashOf(members []string) []byte {
	sum := sha256.Sum256([]byte(strings.Join(members, "\n")))
	return sum[:namesHash]
}

// encode encodes the versions of these members, in their order. Any replica can read the result.
func (v versions) encode(members []string) string {
	text := hashOf(members)
	for _, member := range members {
		text = binary.AppendUvarint(text, v[member])
	}
	return versionPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// checkVersion refuses invalid versions. A list is current, and therefore not older than any valid
// version: of this view, of one with other members, or of a member.
func checkVersion(text string, members []string) error {
	if _, err := strconv.ParseUint(text, 10, 64); err == nil || text == "" {
		return nil
	}
	_, err := decodeVersions(text, members)
	if err != nil && (apierrors.IsBadRequest(err) || !strings.HasPrefix(text, versionPrefix)) {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: leave it out, or give one of a list of this view", untrusted.Excerpt(text, maxText)))
	}
	return nil
}

// decodeVersions reads what encode wrote. A version that is not a fleet's, such as that of an
// object, or that has other members, is 410: the client lists again.
func decodeVersions(text string, members []string) (versions, error) {
	encoded, ok := strings.CutPrefix(text, versionPrefix)
	if !ok {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("%q is not a version of this view: list again", untrusted.Excerpt(text, maxText)))
	}
	content, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(text) > maxVersion || len(content) < namesHash {
		return nil, apierrors.NewBadRequest("invalid resource version: it is no version of a view of the fleet")
	}
	return decodeContent(content, members)
}

// decodeKept reads what encode wrote, of any size.
func decodeKept(text string, members []string) (versions, error) {
	content, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, versionPrefix))
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("decoding a kept version: %w", err))
	}
	return decodeContent(content, members)
}

func decodeContent(content []byte, members []string) (versions, error) {
	if string(content[:namesHash]) != string(hashOf(members)) {
		return nil, errOtherMembers()
	}
	content = content[namesHash:]
	v := versions{}
	for _, member := range members {
		number, used := binary.Uvarint(content)
		if used <= 0 {
			return nil, apierrors.NewBadRequest("invalid resource version: it is cut off")
		}
		if number > 0 {
			v[member] = number
		}
		content = content[used:]
	}
	return v, v.complete()
}

func errOtherMembers() error {
	return apierrors.NewResourceExpired("the members of the view, or those that you may reach, have changed: list again")
}
