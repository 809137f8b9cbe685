// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"
)

// verifier verifies a registry's contents with the information of a user: digests, and a public key
// or the signer's identity.
type verifier struct {
	options cosign.CheckOpts
}

// verifyRelease pulls everything by digest and verifies it. An error names the artifact and the
// problem.
func (v verifier) verifyRelease(ctx context.Context, all []artifact, images []image, charts *packed) error {
	for _, one := range images {
		index, err := remote.Index(one.digest, registry(ctx)...)
		if err != nil {
			return fmt.Errorf("pulling %s: %w", one.digest, err)
		}
		if err := validate.Index(index); err != nil {
			return fmt.Errorf("the content of %s does not verify: %w", one.digest, err)
		}
	}
	for _, one := range charts.all {
		archive, err := pullChart(ctx, one.digest)
		if err != nil {
			return err
		}
		values, err := valuesOf(archive, one.command)
		if err != nil {
			return fmt.Errorf("reading chart %s: %w", one.digest, err)
		}
		if err := checkPinned(values, images); err != nil {
			return fmt.Errorf("chart %s: %w", one.digest, err)
		}
	}
	for _, one := range all {
		if err := v.verify(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// verify checks that an artifact has all statements, that each is about this digest, and that the
// trusted signer made it.
func (v verifier) verify(ctx context.Context, one artifact) error {
	v.options.RegistryClientOpts = []ociremote.Option{ociremote.WithRemoteOptions(registry(ctx)...)}
	bundles, digest, err := cosign.GetBundles(ctx, one.digest, v.options.RegistryClientOpts)
	var none *cosign.ErrNoMatchingAttestations
	if errors.As(err, &none) {
		return fmt.Errorf("%s has no signature and no statement", one.digest)
	}
	if err != nil {
		return fmt.Errorf("looking for what is said of %s: %w", one.digest, err)
	}
	raw, err := hex.DecodeString(digest.Hex)
	if err != nil {
		return fmt.Errorf("reading the digest of %s: %w", one.digest, err)
	}
	said, problems := map[string][]any{}, map[string]error{}
	for _, found := range bundles {
		claimed, err := claimedType(found)
		if err != nil {
			// Ignore it: every user with push rights can attach statements.
			continue
		}
		result, err := cosign.VerifyNewBundle(ctx, &v.options, verify.WithArtifactDigest(digest.Algorithm, raw), found)
		if err != nil {
			problems[claimed] = err
			continue
		}
		predicate, err := plain(result)
		if err != nil {
			return fmt.Errorf("reading what is said of %s: %w", one.digest, err)
		}
		said[result.Statement.GetPredicateType()] = append(said[result.Statement.GetPredicateType()], predicate)
	}
	for _, what := range one.statements {
		if err := what.among(said[what.predicateType], problems[what.predicateType]); err != nil {
			return fmt.Errorf("%s: %w", one.digest, err)
		}
	}
	return nil
}

// among finds a statement among the verified ones; problem is why another one of its type was
// rejected.
func (s statement) among(said []any, problem error) error {
	var wanted any
	if err := json.Unmarshal(s.predicate, &wanted); err != nil {
		return fmt.Errorf("reading the %s to look for: %w", s.name, err)
	}
	for _, one := range said {
		if reflect.DeepEqual(one, wanted) {
			return nil
		}
	}
	switch {
	case len(said) > 0:
		return fmt.Errorf("its %s says something else than this release", s.name)
	case problem != nil:
		return fmt.Errorf("its %s does not verify: %w", s.name, problem)
	}
	return fmt.Errorf("it has no %s", s.name)
}

// claimedType returns the type of an unverified statement.
func claimedType(found verify.SignedEntity) (string, error) {
	content, err := found.SignatureContent()
	if err != nil {
		return "", err
	}
	if content.EnvelopeContent() == nil {
		return "", errors.New("it has no envelope")
	}
	claimed, err := content.EnvelopeContent().Statement()
	if err != nil {
		return "", err
	}
	return claimed.GetPredicateType(), nil
}

// plain returns the predicate of a verified statement as encoding/json decodes it.
func plain(result *verify.VerificationResult) (any, error) {
	if result.Statement == nil {
		return nil, errors.New("it is no statement")
	}
	text, err := protojson.Marshal(result.Statement.GetPredicate())
	if err != nil {
		return nil, err
	}
	var predicate any
	err = json.Unmarshal(text, &predicate)
	return predicate, err
}
