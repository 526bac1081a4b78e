# brew.rb FORMULA OS ARCH DIST PREFIX: does with a formula what Homebrew's documentation (https://docs.brew.sh/Formula-Cookbook) says of its words, and of no other word: it takes the
# archive for the machine from DIST, compares its sum, unpacks and installs it below PREFIX, runs the test of the formula, and prints what it has found as JSON.
require "digest"
require "fileutils"
require "json"
require "open3"
require "pathname"
require "tmpdir"

FORMULA, SYSTEM, ARCH, DIST, PREFIX = ARGV

class Pathname
  alias / +

  def install(*names)
    mkpath
    names.each { |name| FileUtils.cp(name, self, preserve: true) }
  end
end

class Formula
  class Service
    attr_reader :said

    def initialize(formula) = (@formula, @said = formula, {})

    %i[run keep_alive working_dir environment_variables log_path error_log_path].each do |word|
      define_method(word) { |*values, **named| @said[word] = values.empty? ? named : values.first }
    end

    %i[opt_bin var].each { |dir| define_method(dir) { @formula.send(dir) } }
  end

  class << self
    attr_reader :said, :services, :tests

    def inherited(made)
      super
      made.instance_variable_set(:@said, {})
    end

    %i[desc homepage version license url sha256].each do |word|
      define_method(word) do |value|
        raise "#{word} is said twice" if @said.key?(word)
        @said[word] = value
      end
    end

    { on_macos: ["darwin"], on_linux: ["linux"] }.each { |word, systems| define_method(word) { |&block| class_eval(&block) if systems.include?(SYSTEM) } }
    { on_intel: ["amd64"], on_arm: ["arm64"] }.each { |word, archs| define_method(word) { |&block| class_eval(&block) if archs.include?(ARCH) } }

    def service(&block) = @services = block

    def test(&block) = @tests = block
  end

  def prefix = Pathname(PREFIX)
  def bin = prefix/"bin"
  def opt_bin = bin
  def var = prefix/"var"

  def shell_output(command)
    out, status = Open3.capture2(command)
    raise "#{command}: #{status}" unless status.success?
    out
  end

  def assert_equal(want, got)
    raise "#{got.inspect} is not #{want.inspect}" unless want == got
  end
end

load FORMULA
formula = Hydrallm.new
said = Hydrallm.said
archive = File.join(DIST, File.basename(said.fetch(:url)))
raise "another sum: #{archive}" unless Digest::SHA256.file(archive).hexdigest == said.fetch(:sha256)
Dir.mktmpdir do |dir|
  system("tar", "-xzf", archive, "-C", dir, exception: true)
  found = Dir.children(dir)
  # Homebrew enters a directory that is alone in an archive.
  Dir.chdir(found.size == 1 ? File.join(dir, found.first) : dir) { formula.install }
end
formula.post_install
service = Formula::Service.new(formula)
service.instance_eval(&Hydrallm.services)
run = service.said.fetch(:run)
raise "the service runs what is not there: #{run.first}" unless File.executable?(run.first)
raise "the service works where nothing is: #{service.said[:working_dir]}" unless File.directory?(service.said.fetch(:working_dir))
formula.instance_eval(&Hydrallm.tests)
puts JSON.generate(said.merge(installed: Dir.glob("**/*", base: PREFIX).sort, run: run.map(&:to_s)))
