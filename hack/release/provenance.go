// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// buildType is the type of the build; hack/RELEASING.md defines it.
const buildType = "https://fleetgate.io/release/v1"

// These are predicate types of cosign: sign, slsaprovenance1 and spdxjson.
const (
	signatureType  = "https://sigstore.dev/cosign/sign/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	sbomType       = "https://spdx.dev/Document"
)

// statement is an in-toto statement about a digest.
type statement struct {
	// name is for messages.
	name          string
	predicateType string
	predicate     json.RawMessage
}

// artifact is an object in the registry with its statements.
type artifact struct {
	digest     name.Digest
	statements []statement
	// listed artifacts are in the list of digests to install.
	listed bool
}

// artifacts returns everything that gets statements: images, those of each platform, and charts.
func artifacts(images []image, charts *packed, provenance json.RawMessage) []artifact {
	both := []statement{
		{"signature", signatureType, json.RawMessage("{}")},
		{"provenance", provenanceType, provenance},
	}
	var all []artifact
	for _, one := range images {
		all = append(all, artifact{digest: one.digest, statements: both, listed: true})
		for _, platform := range one.platforms {
			all = append(all, artifact{digest: platform.digest, statements: append(both[:len(both):len(both)], statement{"SBOM", sbomType, platform.sbom})})
		}
	}
	for _, one := range charts.all {
		all = append(all, artifact{digest: one.digest, statements: both, listed: true})
	}
	return all
}

// origin returns the provenance predicate. It names no machine, no person, and no time but the
// commit's, so the same commit gives the same text. The builder is the signer.
func (p *plan) origin(from source, images []image) (json.RawMessage, error) {
	compiler, err := compilerOf(images)
	if err != nil {
		return nil, err
	}
	parameters := map[string]any{"source": p.url, "version": p.version}
	commit := map[string]any{
		"uri":    "git+" + p.url + "@" + from.commit,
		"digest": map[string]string{"gitCommit": from.commit},
	}
	if !from.tagged {
		parameters["untagged"] = true
	}
	if from.changed {
		// A changed tree is the content of no commit.
		parameters["changed"] = true
		delete(commit, "digest")
	}
	return json.Marshal(map[string]any{
		"buildDefinition": map[string]any{
			"buildType":            buildType,
			"externalParameters":   parameters,
			"internalParameters":   map[string]any{"go": compiler, "sourceDate": p.created.Format(time.RFC3339)},
			"resolvedDependencies": []any{commit},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": buildType}},
	})
}

// compilerOf returns the Go version of the images' SBOMs.
func compilerOf(images []image) (string, error) {
	compiler := ""
	for _, one := range images {
		for _, platform := range one.platforms {
			found, err := compilerIn(platform.sbom)
			if err != nil {
				return "", fmt.Errorf("reading the SBOM of %s for %s: %w", one.command, platform.name, err)
			}
			if compiler != "" && found != compiler {
				return "", fmt.Errorf("%s for %s was built by Go %s, and others by %s: build all with one", one.command, platform.name, found, compiler)
			}
			compiler = found
		}
	}
	return compiler, nil
}

// compilerIn returns the Go version of one SBOM.
func compilerIn(sbom []byte) (string, error) {
	var document struct {
		Packages []struct {
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(sbom, &document); err != nil {
		return "", err
	}
	for _, part := range document.Packages {
		if part.Name == "stdlib" && part.Version != "" {
			return part.Version, nil
		}
	}
	return "", errors.New("it does not say which Go has built it")
}
