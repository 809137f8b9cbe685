// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

// The parts of SPDX 2.3 that are filled in here.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Created       spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID         string          `json:"SPDXID"`
		Name       string          `json:"name"`
		Version    string          `json:"versionInfo,omitempty"`
		Location   string          `json:"downloadLocation"`
		Analyzed   bool            `json:"filesAnalyzed"`
		Concluded  string          `json:"licenseConcluded"`
		Declared   string          `json:"licenseDeclared"`
		Copyright  string          `json:"copyrightText"`
		Checksums  []spdxChecksum  `json:"checksums,omitempty"`
		References []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	unasserted = "NOASSERTION"
	documentID = "SPDXRef-DOCUMENT"
	binaryID   = "SPDXRef-binary"
)

// describe returns the SBOM of a binary from its build information.
func describe(c content, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("reading what the binary is made of: %w", err)
	}
	sum := sha256.Sum256(binary)
	digest := hex.EncodeToString(sum[:])
	document := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID, Name: c.name,
		Namespace: "https://fleetgate.io/spdx/" + c.name + "-" + digest,
		Created:   spdxCreation{Created: c.created.Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: fleetgate-images"}},
	}
	main := newPackage(binaryID, info.Main.Path, c.version)
	main.Concluded, main.Declared = "Apache-2.0", "Apache-2.0"
	main.Checksums = []spdxChecksum{{"SHA256", digest}}
	document.add(main, documentID, "DESCRIBES")
	document.add(newPackage("SPDXRef-go", "stdlib", strings.TrimPrefix(info.GoVersion, "go")), binaryID, "CONTAINS")
	for i, dependency := range info.Deps {
		document.add(newPackage(fmt.Sprintf("SPDXRef-module-%d", i+1), used(dependency).Path, used(dependency).Version), binaryID, "CONTAINS")
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

// used returns the module that was linked, if another one replaced the required one.
func used(module *debug.Module) *debug.Module {
	if module.Replace != nil {
		return module.Replace
	}
	return module
}

func newPackage(id, path, version string) spdxPackage {
	return spdxPackage{
		ID: id, Name: path, Version: version, Location: unasserted, Concluded: unasserted, Declared: unasserted, Copyright: unasserted,
		References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}

// add adds a package to the document with its relationship to another element.
func (d *spdxDocument) add(p spdxPackage, from, kind string) {
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{From: from, Kind: kind, To: p.ID})
}
