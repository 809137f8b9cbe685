// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-openapi/runtime"
	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
)

const (
	releaser = "release@example.org"
	issuer   = "https://accounts.example.org"
	// entryName is the ID of each log entry; no test reads one by ID.
	entryName = "01"
)

// Certificate extensions: the issuer of the token (Fulcio's OIDs), and the log's promises (RFC 6962
// section 3.3).
var (
	oidIssuer = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
	oidSCTs   = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}
)

// sigstore stands in for Sigstore's services: it issues certificates for the subject of a token,
// with the promise of a certificate log, and logs signatures.
type sigstore struct {
	*ca.VirtualSigstore
	// services and roots are its configuration files: endpoints and trusted roots.
	services, roots string
	authority       *x509.Certificate
	key, logKey     *ecdsa.PrivateKey

	mu sync.Mutex
	// issued are the subjects of issued certificates, in order.
	issued []string
	// logged counts logged signatures.
	logged int
}

func newSigstore(t *testing.T) *sigstore {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	s := &sigstore{VirtualSigstore: virtual}
	if s.authority, s.key, err = ca.GenerateRootCa(); err != nil {
		t.Fatal(err)
	}
	if s.logKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/signingCert", answer(s.issue))
	mux.HandleFunc("POST /api/v1/log/entries", answer(s.log))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	s.services, s.roots = filepath.Join(folder, "services.json"), filepath.Join(folder, "roots.json")
	services := fmt.Sprintf(`{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
		"caUrls": [{"url": %[1]q, "majorApiVersion": 1, "validFor": {"start": "2020-01-01T00:00:00Z"}, "operator": "test"}],
		"rekorTlogUrls": [{"url": %[1]q, "majorApiVersion": 1, "validFor": {"start": "2020-01-01T00:00:00Z"}, "operator": "test"}],
		"rekorTlogConfig": {"selector": "ANY"}, "tsaConfig": {"selector": "ANY"}}`, server.URL)
	if err := os.WriteFile(s.services, []byte(services), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.roots, s.trusted(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// trusted writes its trusted roots in cosign's format.
func (s *sigstore) trusted(t *testing.T) []byte {
	t.Helper()
	logs := map[string]*root.TransparencyLog{}
	for id, one := range s.RekorLogs() {
		raw, err := hex.DecodeString(id)
		if err != nil {
			t.Fatal(err)
		}
		one.ID = raw
		logs[id] = one
	}
	id := logID(t, s.logKey)
	certificates := map[string]*root.TransparencyLog{hex.EncodeToString(id): {
		BaseURL: "https://ct.example.org", ID: id, HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
		PublicKey: s.logKey.Public(), ValidityPeriodStart: s.authority.NotBefore, ValidityPeriodEnd: s.authority.NotAfter,
	}}
	authority := &root.FulcioCertificateAuthority{
		Root: s.authority, URI: "https://ca.example.org", ValidityPeriodStart: s.authority.NotBefore, ValidityPeriodEnd: s.authority.NotAfter,
	}
	all, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{authority}, certificates, nil, logs)
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// logID is the ID of a log: the hash of its key (RFC 6962 section 3.2).
func logID(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	encoded, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(encoded)
	return sum[:]
}

// answer serves a function's result as JSON.
func answer(serve func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		body, err := serve(request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if request.URL.Path == "/api/v1/log/entries" {
			w.Header().Set("ETag", entryName)
			w.WriteHeader(http.StatusCreated)
		}
		// A failed write fails the client.
		_ = json.NewEncoder(w).Encode(body)
	}
}

// tokenFor returns a token of an issuer. Its signature is not verified here.
func tokenFor(email string) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"iss": %q, "aud": "sigstore", "sub": "1", "email": %q, "email_verified": true}`, issuer, email)
	return encode([]byte(`{"alg": "none"}`)) + "." + encode([]byte(claims)) + ".signature"
}

// issue responds like Fulcio: a certificate for the token's subject and for a key that has signed
// that subject.
func (s *sigstore) issue(request *http.Request) (any, error) {
	var asked struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Content string }
			ProofOfPossession []byte
		}
	}
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		return nil, err
	}
	_, claimed, _ := strings.Cut(request.Header.Get("Authorization"), ".")
	encoded, _, _ := strings.Cut(claimed, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	var claims struct{ Iss, Email string }
	if err := json.Unmarshal(text, &claims); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(asked.PublicKeyRequest.PublicKey.Content))
	if block == nil {
		return nil, errors.New("no public key")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := public.(*ecdsa.PublicKey)
	sum := sha256.Sum256([]byte(claims.Email))
	if !ok || !ecdsa.VerifyASN1(key, sum[:], asked.PublicKeyRequest.ProofOfPossession) {
		return nil, errors.New("the requester did not prove possession of the key")
	}
	raw, err := s.certify(claims.Email, claims.Iss, key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued = append(s.issued, claims.Email)
	chain := []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))}
	return map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{"certificates": chain}}}, nil
}

// certify creates a certificate for ten minutes. The certificate log signs the certificate without
// this promise.
func (s *sigstore) certify(email, issuer string, key *ecdsa.PublicKey) ([]byte, error) {
	by, err := asn1.MarshalWithParams(issuer, "utf8")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		EmailAddresses: []string{email}, ExtraExtensions: []pkix.Extension{{Id: oidIssuer, Value: by}},
	}
	bare, err := x509.CreateCertificate(rand.Reader, template, s.authority, key, s.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(bare)
	if err != nil {
		return nil, err
	}
	promises, err := s.promise(parsed.RawTBSCertificate, now)
	if err != nil {
		return nil, err
	}
	template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oidSCTs, Value: promises})
	return x509.CreateCertificate(rand.Reader, template, s.authority, key, s.key)
}

// promise is the extension with the certificate log's signature (RFC 6962 section 3.3).
func (s *sigstore) promise(certificate []byte, now time.Time) ([]byte, error) {
	encoded, err := x509.MarshalPKIXPublicKey(s.logKey.Public())
	if err != nil {
		return nil, err
	}
	promise := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1, LogID: ct.LogID{KeyID: sha256.Sum256(encoded)}, Timestamp: uint64(now.UnixMilli()), //nolint:gosec // After 1970.
	}
	input, err := ct.SerializeSCTSignatureInput(promise, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			EntryType: ct.PrecertLogEntryType, Timestamp: promise.Timestamp,
			PrecertEntry: &ct.PreCert{IssuerKeyHash: sha256.Sum256(s.authority.RawSubjectPublicKeyInfo), TBSCertificate: certificate},
		},
	}})
	if err != nil {
		return nil, err
	}
	signed, err := cttls.CreateSignature(*s.logKey, cttls.SHA256, input)
	if err != nil {
		return nil, err
	}
	promise.Signature = ct.DigitallySigned(signed)
	list, err := x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&promise})
	if err != nil {
		return nil, err
	}
	raw, err := cttls.Marshal(*list)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(raw)
}

// log responds like Rekor: with the entry, its time, and the inclusion proof.
func (s *sigstore) log(request *http.Request) (any, error) {
	proposed, err := models.UnmarshalProposedEntry(request.Body, runtime.JSONConsumer())
	if err != nil {
		return nil, err
	}
	entry, err := types.CreateVersionedEntry(proposed)
	if err != nil {
		return nil, err
	}
	body, err := types.CanonicalizeEntry(request.Context(), entry)
	if err != nil {
		return nil, err
	}
	id, err := s.RekorLogID()
	if err != nil {
		return nil, err
	}
	payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: time.Now().Unix(), LogID: id}
	promise, err := s.RekorSignPayload(payload)
	if err != nil {
		return nil, err
	}
	proof, err := s.GetInclusionProof(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged++
	return map[string]any{entryName: map[string]any{
		"body": payload.Body, "integratedTime": payload.IntegratedTime, "logIndex": payload.LogIndex, "logID": id,
		"verification": map[string]any{"signedEntryTimestamp": promise, "inclusionProof": proof},
	}}, nil
}

// seen returns the subjects of issued certificates and the number of logged signatures.
func (s *sigstore) seen() (issued []string, logged int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.issued...), s.logged
}

// keyless returns the arguments for keyless signing with it.
func (s *sigstore) keyless(identity, by string) []string {
	return []string{"-key=", "-identity=" + identity, "-issuer=" + by, "-signing-config=" + s.services, "-trusted-root=" + s.roots}
}
