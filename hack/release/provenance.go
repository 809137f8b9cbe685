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

// buildType names how a release is built; docs/release.md says what that is.
const buildType = "https://fleetgate.io/release/v1"

// The types of predicates, as cosign knows them: sign, slsaprovenance1 and spdxjson.
const (
	signatureType  = "https://sigstore.dev/cosign/sign/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	sbomType       = "https://spdx.dev/Document"
)

// statement is what is said of a digest, as an in-toto statement.
type statement struct {
	// name is for people.
	name          string
	predicateType string
	predicate     json.RawMessage
}

// artifact is something in the registry, with all that is said of it.
type artifact struct {
	digest     name.Digest
	statements []statement
	// listed has it in the list of what to install.
	listed bool
}

// artifacts are all that is vouched for: images, those of each platform, and charts.
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

// origin returns the predicate that says where a release comes from. It names no machine
// and no person, and no time but the commit's: the same commit gives the same text, and
// who built it is who signed it.
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
		// What was built is the content of no commit.
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

// compilerOf reads from the SBOMs which version of Go has built the images.
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

// compilerIn reads it from one SBOM.
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
