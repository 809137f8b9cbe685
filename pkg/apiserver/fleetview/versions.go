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
)

const (
	// versionPrefix begins the version of a fleet. A letter comes first: some clients read
	// versions as numbers, and would compare what cannot be compared.
	versionPrefix = "v1."
	// maxVersion bounds what a caller gives as one; one of 1,000 members has about 8 KiB.
	maxVersion = 64 << 10
	// namesHash is how many bytes say of which members a version is.
	namesHash = 8
	// midst stands for the version of a member of whose list a part was told: what is gone
	// of that before it is listed again would be told nobody.
	midst uint64 = math.MaxInt64
)

// versions are up to where each member of a list or a watch was read; one that is missing
// was not.
type versions map[string]uint64

// set notes a member's own version. Those that are no numbers are of servers that cannot
// be gone on with.
func (v versions) set(member, version string) {
	if number, err := strconv.ParseUint(version, 10, 63); err == nil && number > 0 {
		v[member] = number
	}
}

// of is where a member can be watched from; empty if it has to be listed first.
func (v versions) of(member string) string {
	if number, ok := v[member]; ok && number != midst {
		return strconv.FormatUint(number, 10)
	}
	return ""
}

// complete is an error if nobody can go on from there.
func (v versions) complete() error {
	for member, number := range v {
		if number == midst {
			return apierrors.NewResourceExpired(fmt.Sprintf("of member %q a part of what it has was told there: list again", member))
		}
	}
	return nil
}

func hashOf(members []string) []byte {
	sum := sha256.Sum256([]byte(strings.Join(members, "\n")))
	return sum[:namesHash]
}

// encode is the versions of these members, in their order, as one. Any replica reads it.
func (v versions) encode(members []string) string {
	text := hashOf(members)
	for _, member := range members {
		text = binary.AppendUvarint(text, v[member])
	}
	return versionPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// checkVersion refuses what is no version at all. A list is of now, and so not older than any
// that there was: of this view, of one with other members, or of a member.
func checkVersion(text string, members []string) error {
	if _, err := strconv.ParseUint(text, 10, 64); err == nil || text == "" {
		return nil
	}
	_, err := decodeVersions(text, members)
	if err != nil && (apierrors.IsBadRequest(err) || !strings.HasPrefix(text, versionPrefix)) {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: leave it out, or give one of a list of this view", printable(text)))
	}
	return nil
}

// decodeVersions reads what encode wrote. What is none of a fleet's, such as the version of an
// object, or is of other members, is 410: whoever has it lists again.
func decodeVersions(text string, members []string) (versions, error) {
	encoded, ok := strings.CutPrefix(text, versionPrefix)
	if !ok {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("%q is not a version of this view: list again", printable(text)))
	}
	content, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(text) > maxVersion || len(content) < namesHash {
		return nil, apierrors.NewBadRequest("invalid resource version: it is none that a view of the fleet gave")
	}
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
